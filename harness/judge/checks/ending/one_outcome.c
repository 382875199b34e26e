/* Compares the exit codes of all agents with each other and with how the workers ended. */
#include "harness/judge/checks/check.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>

static const char broken[] =
    "Outcome: all agents end alike, and success means that all workers did.";

enum { EXIT_LEFT = 128 }; /* and the signal by which it was told to */

/* A job that the harness had to stop has no outcome of its own. */
static bool stopped_by_harness(const struct trial *t) {
    const struct record *end = history_newest(t->history, SOURCE_HARNESS, "job-end");
    return end && !str_eq(record_text(end, "why"), "ended");
}

static bool judge_agent(const struct trial *t, struct finding *f, const struct agent_end *a) {
    if (a->spare || (a->fault_id && !a->told_to_leave))
        return true;
    if (!a->exit_ns && history_is_cut(t->history))
        finding_unknown(
            f, broken, "the agent of %s still ran when the history stops, before the job has ended",
            a->node);
    else if (!a->exit_ns)
        finding_fail(f, broken, "every agent ends with the job", "the agent of %s never ended",
                     a->node);
    else if (a->told_to_leave && a->code != EXIT_LEFT + a->told_to_leave &&
             !check_by_torchrun(t->scenario) && !check_template(t))
        finding_fail(f, broken,
                     finding_expected(f, "an agent that signal %d tells to leave ends %d",
                                      a->told_to_leave, EXIT_LEFT + a->told_to_leave),
                     "the agent of %s ended with code %d, signal %d", a->node, a->code, a->signal);
    else if (!a->told_to_leave && a->signal)
        finding_fail(f, broken, "an agent ends by itself", "the agent of %s died on signal %d",
                     a->node, a->signal);
    else if (!a->told_to_leave && a->code != 0 && a->code != 1 &&
             !(t->scenario->expect.outcome == OUTCOME_REFUSED && check_refused(t, a)))
        finding_fail(f, broken, "an agent ends 0 (the job succeeded) or 1 (it failed)",
                     "the agent of %s ended %d", a->node, a->code);
    else
        return true;
    finding_prove(f, a->seq);
    return false;
}

static bool judge_alike(const struct trial *t, struct finding *f, const struct agent_end *v,
                        size_t n, const struct agent_end **ret_any) {
    for (size_t i = 0; i < n; i++) {
        if (!judge_agent(t, f, &v[i]))
            return false;
        if (v[i].fault_id || v[i].spare)
            continue;
        if (*ret_any && (*ret_any)->code != v[i].code) {
            finding_prove(f, (*ret_any)->seq, v[i].seq);
            return finding_fail(f, broken, "one outcome for all agents",
                                "the agent of %s ended %d, the agent of %s ended %d",
                                (*ret_any)->node, (*ret_any)->code, v[i].node, v[i].code);
        }
        *ret_any = &v[i];
    }
    return true;
}

/* What a launcher calls success must have been one, worker by worker, in the last round. */
static bool judge_success(const struct trial *t, struct finding *f) {
    const struct round *last = t->rounds->n ? t->rounds->v[t->rounds->n - 1] : NULL;
    if (!last || !last->complete)
        return finding_fail(f, broken, "a complete last round", "the agents ended 0, but %s",
                            last ? "the last round never became complete"
                                 : "no worker was ever started");
    for (size_t i = 0; i < last->n; i++) {
        const struct worker *w = last->workers[i];
        if (worker_ended_well(w))
            continue;
        finding_prove(f, w->exit_seq ? w->exit_seq : w->start_seq);
        if (w->exit_ns && !w->exit_known)
            return check_unknown_exit(t, f, broken, w);
        char how[40] = "was never seen to end";
        if (w->exit_ns)
            snprintf(how, sizeof(how), w->exit_signal ? "died on signal %d" : "ended %d",
                     w->exit_signal ? w->exit_signal : w->exit_code);
        return finding_fail(f, broken, "every worker of the last round ended 0",
                            "the agents ended 0, but rank %d on %s %s", w->rank, w->node, how);
    }
    return finding_pass(f, "all agents ended 0, and so did the %zu workers of round %d", last->n,
                        last->number);
}

/* ---- semantics: torchrun: each agent ends as its own workers did ---- */

static const struct worker *unsuccessful(const struct trial *t, const struct agent_end *a) {
    const struct round *last = NULL;
    for (size_t i = t->rounds->n; i-- > 0 && !last;)
        if (t->rounds->v[i]->first_start_ns <= a->exit_ns &&
            round_on_node(t->rounds->v[i], a->node))
            last = t->rounds->v[i];
    for (size_t i = 0; last && i < last->n; i++) {
        const struct worker *w = last->workers[i];
        if (str_eq(w->node, a->node) && !worker_ended_well(w))
            return w;
    }
    return NULL;
}

static bool judge_each(const struct trial *t, struct finding *f, const struct agent_end *v,
                       size_t n) {
    size_t succeeded = 0, failed = 0;
    for (size_t i = 0; i < n; i++) {
        if (!judge_agent(t, f, &v[i]))
            return false;
        if (v[i].fault_id || v[i].spare)
            continue;
        const struct worker *w = v[i].code ? NULL : unsuccessful(t, &v[i]);
        succeeded += !v[i].code;
        failed += v[i].code == 1;
        if (w && w->exit_ns && !w->exit_known)
            return check_unknown_exit(t, f, broken, w);
        if (w) {
            finding_prove(f, v[i].seq, w->exit_seq ? w->exit_seq : w->start_seq);
            return finding_fail(f, broken, "an agent ends 0 when its workers did",
                                "the agent of %s ended 0, but rank %d of round %d did not",
                                v[i].node, w->rank, w->round);
        }
    }
    return finding_pass(f, "%zu agent%s ended 0, as did their workers; %zu ended 1", succeeded,
                        succeeded == 1 ? "" : "s", failed);
}

static bool judge(const struct trial *t, struct finding *f) {
    size_t n;
    const struct agent_end *agents = check_agents(t, &n), *any = NULL;
    if (stopped_by_harness(t))
        return finding_skip(f, "the harness stopped the job");
    if (!n)
        return finding_unknown(f, broken, "no agent was seen to start");
    if (check_by_torchrun(t->scenario))
        return judge_each(t, f, agents, n);
    if (!judge_alike(t, f, agents, n, &any))
        return false;
    if (any && any->code == 0)
        return judge_success(t, f);
    if (any && any->code != 1)
        return finding_pass(f, "all agents ended %d: they refused to begin", any->code);
    return finding_pass(f, any ? "all agents ended 1: the job failed"
                               : "every agent was taken away by a fault");
}

const struct check check_one_outcome = {
    .name = "one_outcome",
    .summary = "all agents end alike, and success means that every worker succeeded",
    .text = "Every agent ends 0 or every agent ends 1, but for those that a fault killed; one that "
            "was told to leave ends 143, or 128 and the signal that told it, and one that a fault "
            "kept from the store for --rdzv-conf give_up ends 69. Where the scenario expects that "
            "they refuse, every agent ends 64. When they end 0, "
            "every worker of the last round has ended "
            "0 as the kernel saw it.",
    .example = "rankquake run scenarios/restart/worker-fails-until-budget.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(KERNEL) | SOURCES(PROBE),
    .judge = judge,
};
