/* Follows the restart count that each agent reports. */
#include "harness/judge/checks/check.h"

#include "base/str.h"

static const char broken[] =
    "Restarts of an agent: it counts what it has restarted, one by one, and forgets none.";

#define WRONG(expected, ...)                                                                       \
    (finding_prove(f, last ? last->start_seq : a->seq, w->start_seq),                              \
     finding_fail(f, broken, expected, __VA_ARGS__))

/* last: whom the agent has told before, NULL: nobody. */
static bool judge_worker(const struct trial *t, struct finding *f, const struct agent_end *a,
                         const struct worker *last, const struct worker *w) {
    bool by_agent = t->scenario->torchrun_semantics;
    int before = last ? last->restart_count : 0;
    if (last && w->restart_count < before)
        return WRONG("a count that never goes back while its agent lives",
                     "the agent of %s told %d in round %d and %d in round %d", a->node, before,
                     last->round, w->restart_count, w->round);
    if (by_agent && !last && w->restart_count)
        return WRONG("0 for the first workers of an agent", "the agent of %s told %d in round %d",
                     a->node, w->restart_count, w->round);
    if (by_agent && last && w->restart_count > before + (w->round != last->round))
        return WRONG("one more at most with each round",
                     "the agent of %s told %d in round %d and %d in round %d", a->node, before,
                     last->round, w->restart_count, w->round);
    return true;
}

static bool judge_agent(const struct trial *t, struct finding *f, const struct agent_end *a) {
    const struct worker *last = NULL;
    for (size_t i = 0; i < t->rounds->workers_n; i++) {
        const struct worker *w = t->rounds->workers[i];
        if (!str_eq(w->node, a->node) || w->start_ns < a->start_ns ||
            (a->exit_ns && w->start_ns > a->exit_ns))
            continue;
        if (!judge_worker(t, f, a, last, w))
            return false;
        last = w;
    }
    return true;
}

static const char *idle(const struct scenario *s) {
    return str_eq(s->job.launcher, "template") ? "a template restarts by rules of its own" : NULL;
}

static bool judge(const struct trial *t, struct finding *f) {
    size_t n;
    const struct agent_end *agents = check_agents(t, &n);
    if (!check_sees_rounds(t, f))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!judge_agent(t, f, &agents[i]))
            return false;
    return n ? finding_pass(f, "%zu agent%s never counted back", n, n == 1 ? "" : "s")
             : finding_unknown(f, broken, "no agent was seen to start");
}

const struct check check_agent_restarts = {
    .name = "agent_restarts",
    .summary = "no agent's count of restarts goes back while it lives",
    .text = "What an agent tells its workers as TORCHELASTIC_RESTART_COUNT never goes back while "
            "it lives. Under semantics: torchrun, where each agent counts for itself, it begins "
            "with 0 and rises by one at most with each round; otherwise the count is the job's, "
            "and restart_count tells what it must be.",
    .example = "rankquake run scenarios/restart/worker-killed.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(PROBE) | SOURCES(KERNEL),
    .not_applicable = idle,
    .told = true,
    .judge = judge,
};
