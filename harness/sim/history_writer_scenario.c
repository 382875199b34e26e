/* Writes the scenario that a simulated run would have had. */
#include "faults/effect.h"
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

/* One that met nothing, such as a cut while nobody spoke, would leave the judge with a question
 * that nobody has asked; and a node may well come when all is over. */
static bool is_worth_asking(const struct history *h, const struct record *r) {
    return r->source == SOURCE_HARNESS && record_is(r, "fault-fired") &&
           !(fault_effects(record_text(r, "fault")) & EFFECT_STARTS_NODE) &&
           is_felt(h, record_text(r, "id"));
}

static void put_timeline(const struct history *h, struct buf *out) {
    bool any = false;
    history_each(r, h) {
        if (!is_worth_asking(h, r))
            continue;
        if (!any)
            buf_puts(out, "timeline:\n");
        any = true;
        put_fault(r, h->records[0]->t_ns, out);
    }
}

void sim_scenario(const struct sim_schedule *s, const struct history *h, const struct sim_result *r,
                  struct buf *out) {
    buf_printf(out,
               "scenario: seed-%llu\n"
               "about: A simulated run, in virtual time. No process of it was ever real.\n"
               "cluster: {nodes: %d}\n"
               "job:\n"
               "  nnodes: \"%d:%d\"\n"
               "  workers_per_node: %d\n"
               "  max_restarts: %d\n"
               "  rdzv_conf: {profile: fast}\n"
               "  run: [simulated]\n%s",
               (unsigned long long)s->seed, s->agents, s->min, s->max, SIM_WORKERS, s->max_restarts,
               s->gang ? "  launcher_args: [--on-node-loss=gang]\n" : "");
    put_timeline(h, out);
    buf_printf(out, "expect: {outcome: %s}\n", r->outcome == SIM_FAILED ? "failed" : "succeeded");
}
