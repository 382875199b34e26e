/* Writes the scenario that a simulated run would have had. */
#include "faults/effect.h"
#include "harness/history/rounds.h"
#include "harness/sim/history_writer.h"

#include <string.h>

/* One entry of the timeline for each fault that has struck, as the history has it. A live run knows
 * no fault for some of them; the judge need not. */
static void put_fault(const struct record *r, int64_t begun_ns, struct buf *out) {
    const struct json *on = record_get(r, "on");
    const char *fault = record_text(r, "fault"), *node = json_string(json_first(on), "");
    bool worker = fault_effects(fault) & EFFECT_ENDS_WORKER;
    int64_t us = (r->t_ns - begun_ns) / 1000;
    buf_printf(out, "  - {id: %s, when: {time: %lld.%06llds}, fault: %s, on: %s%s}\n",
               record_text(r, "id"), (long long)us / 1000000, (long long)us % 1000000, fault,
               on && on->length > 1 ? "100%" : node, worker ? "/0" : "");
}

static bool is_felt(const struct history *h, const char *id) {
    history_each(r, h) {
        if (record_is(r, "fault-evidence") && strcmp(record_text(r, "id"), id) == 0)
            return true;
    }
    return false;
}

/* What comes a moment before the end of the work has met no more of it than what comes behind. */
static const int64_t moment_ns = 1000 * SIM_MS;

/* When the job's workers had done their work, less that; INT64_MAX: they never had. */
static int64_t done_ns(const struct history *h) {
    struct rounds rounds;
    rounds_load(&rounds, true, h);
    const struct round *last = rounds_last_complete(&rounds);
    int64_t ret = last && round_ended_well(last) ? round_ended_ns(last) - moment_ns : INT64_MAX;
    rounds_fini(&rounds);
    return ret;
}

/* One that met nothing, such as a cut while nobody spoke, or that came behind the work, would leave
 * the judge with a question that nobody has asked; and a node may well come when all is over. */
static bool is_worth_asking(const struct history *h, const struct record *r, int64_t done) {
    return r->source == SOURCE_HARNESS && record_is(r, "fault-fired") && r->t_ns < done &&
           !(fault_effects(record_text(r, "fault")) & EFFECT_STARTS_NODE) &&
           is_felt(h, record_text(r, "id"));
}

static void put_timeline(const struct history *h, struct buf *out) {
    bool any = false;
    int64_t done = done_ns(h);
    history_each(r, h) {
        if (!is_worth_asking(h, r, done))
            continue;
        if (!any)
            buf_puts(out, "timeline:\n");
        any = true;
        put_fault(r, h->records[0]->t_ns, out);
    }
}

void sim_scenario(const struct sim_schedule *s, const struct history *h, const struct sim_result *r,
                  struct buf *out) {
    struct sim_terms terms = sim_terms(s);
    buf_printf(out,
               "scenario: seed-%llu\n"
               "about: A simulated run, in virtual time. No process of it was ever real.\n%s"
               "cluster: {nodes: %d}\n"
               "job:\n"
               "  nnodes: \"%d:%d\"\n"
               "  workers_per_node: %d\n"
               "  max_restarts: %d\n"
               "  rdzv_conf: {profile: %s, give_up: %lldms, join_timeout: %lldms,\n"
               "    max_free_rounds_per_hour: %d}\n"
               "  run: [simulated]\n%s",
               (unsigned long long)s->seed, terms.count_by_node ? "semantics: torchrun\n" : "",
               s->agents, s->min, s->max, SIM_WORKERS, s->max_restarts,
               s->usual ? "default" : "fast", (long long)(terms.give_up_ns / SIM_MS),
               (long long)(terms.join_timeout_ns / SIM_MS), terms.max_free_rounds,
               s->gang ? "  launcher_args: [--on-node-loss=gang]\n" : "");
    put_timeline(h, out);
    buf_printf(out, "expect: {outcome: %s}\n", r->recorded == SIM_FAILED ? "failed" : "succeeded");
}
