#include "harness/checks/check.h"

#include "agent/base/str.h"

#include <stdio.h>
#include <stdlib.h>

static const char broken[] = "Healing: when what was broken is whole again, the job goes on.";

static int64_t first_after(const struct history *h, enum source source, const char *kind,
                           int64_t t_ns) {
    history_each(r, h) {
        if (r->source == source && record_is(r, kind) && r->t_ns >= t_ns)
            return r->t_ns;
    }
    return 0;
}

static bool agent_alive(const struct agent_end *agents, size_t n, int64_t t_ns) {
    for (size_t i = 0; i < n; i++)
        if (agents[i].start_ns <= t_ns && (!agents[i].exit_ns || agents[i].exit_ns > t_ns))
            return true;
    return false;
}

/* Nothing else of the timeline is still broken, or is broken anew before the job could go on. */
static bool is_last(const struct incidents *is, const struct incident *i, int64_t until_ns) {
    for (size_t k = 0; k < is->n; k++) {
        const struct incident *o = is->v[k];
        if (o == i || !o->in_force)
            continue;
        if (o->recovered && o->t0_ns <= i->recovered_ns && o->recovered_ns > i->recovered_ns)
            return false;
        if (o->t0_ns > i->recovered_ns && o->t0_ns < until_ns)
            return false;
    }
    return true;
}

/* 0 or more: so long after it had been healed the job made a step. -1: there is nothing to say. */
static int64_t took_ns(const struct trial *t, struct finding *f, const struct incident *i,
                       int64_t end_ns) {
    int64_t bound = t->scenario->limits.stall_ns, healed = i->recovered_ns;
    int64_t step = first_after(t->history, SOURCE_JOB, "step", healed);
    int64_t until = step ? step : end_ns ? end_ns : healed + bound;
    if (!is_last(t->incidents, i, until) || (!step && until - healed < bound))
        return -1; /* it ended before that could be seen */
    if (step && step - healed <= bound)
        return step - healed;
    char expected[200];
    snprintf(expected, sizeof(expected), "a step within limits.stall, %g s, after %s was healed",
             (double)bound / 1e9, i->id);
    if (step)
        finding_fail(f, broken, expected, "the next step came after %.1f s",
                     (double)(step - healed) / 1e9);
    else
        finding_fail(f, broken, expected, "no step came any more");
    finding_prove(f, i->force_seq);
    return -1;
}

static bool hits_workers(const struct incident *i) {
    return i->targets_n && str_eq(i->targets[0].what, "worker");
}

static void judge_healed(const struct trial *t, struct finding *f, const struct agent_end *agents,
                         size_t agents_n) {
    int64_t end_ns = first_after(t->history, SOURCE_HARNESS, "job-end", 0), longest = -1;
    const struct incident *slowest = NULL;
    for (size_t k = 0; k < t->incidents->n; k++) {
        const struct incident *i = t->incidents->v[k];
        if (t->scenario->torchrun_semantics && !hits_workers(i))
            continue; /* it says nothing of nodes that were cut off or stood still */
        if (!i->in_force || !i->recovered || !agent_alive(agents, agents_n, i->recovered_ns))
            continue;
        int64_t ns = took_ns(t, f, i, end_ns);
        if (f->status == FINDING_FAIL)
            return;
        if (ns > longest) {
            longest = ns;
            slowest = i;
        }
    }
    if (slowest)
        finding_pass(f, "the next step %.0f ms after %s was healed", (double)longest / 1e6,
                     slowest->id);
    else
        finding_skip(f, "nothing was healed while the job ran");
}

static void judge(const struct trial *t, struct finding *f) {
    if (!first_after(t->history, SOURCE_JOB, "step", 0)) {
        finding_skip(f, "the job sends no steps");
        return;
    }
    struct agent_end *agents = calloc(CHECK_AGENTS_MAX, sizeof(*agents));
    if (!agents)
        abort();
    judge_healed(t, f, agents, check_agents(t, agents, CHECK_AGENTS_MAX));
    free(agents);
}

const struct check check_heal = {
    .name = "heal",
    .summary = "the job goes on once a lasting fault has been undone",
    .text = "When the last thing that was broken is whole again while the job runs, a step must "
            "come within limits.stall. A job that ends before that is judged by its outcome.",
    .example = "rankquake run scenarios/network/partition-and-heal.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(PROBE) | SOURCES(KERNEL) | SOURCES(JOB),
    .tells = TELLS_STEPS,
    .judge = judge,
};
