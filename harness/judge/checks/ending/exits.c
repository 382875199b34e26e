/* Looks for rounds after one in which every worker exited with 0. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/lags.h"

#include "base/str.h"

static const char broken[] =
    "Exits: a group that ends well is the last, its agents say so, and outlive it.";

/* While it ran, a node of the round or the store was hit: what was done may never have been told.
 */
static bool was_disturbed(const struct trial *t, const struct round *r, int64_t until_ns) {
    for (size_t i = 0; i < t->incidents->n; i++) {
        const struct incident *in = t->incidents->v[i];
        bool over = in->recovered && in->recovered_ns < r->first_start_ns;
        if (!in->in_force || in->fired_ns > until_ns || over)
            continue;
        if (check_took_store(t, in))
            return true;
        for (size_t k = 0; k < r->n; k++)
            if (check_names_node(in, r->workers[k]->node))
                return true;
    }
    return false;
}

/* The next round has a node whose agent was there before the last worker had ended: that it is to
 * be taken in may have been decided before anybody was told of the good end. */
static bool had_newcomer(const struct round *r, const struct round *next, const struct agent_end *v,
                         size_t n) {
    int64_t end_ns = round_ended_ns(r);
    for (size_t i = 0; i < n; i++)
        if (v[i].start_ns < end_ns && round_on_node(next, v[i].node) &&
            !round_on_node(r, v[i].node))
            return true;
    return false;
}

/* What ended well is not begun again. */
static bool judge_restart(const struct trial *t, struct finding *f, const struct round *r,
                          const struct round *next, const struct agent_end *v, size_t n) {
    if (!round_ended_well(r) || had_newcomer(r, next, v, n) ||
        was_disturbed(t, r, next->first_start_ns))
        return true;
    finding_prove(f, r->workers[r->n - 1]->exit_seq, next->workers[0]->start_seq);
    return finding_fail(f, broken, "no round after one whose workers have all ended 0",
                        "all %zu workers of round %d had ended 0, and round %d was started", r->n,
                        r->number, next->number);
}

/* Success reported as failure: the last group ended well, and its agent says otherwise. */
static bool judge_failure(const struct trial *t, struct finding *f, const struct round *last,
                          const struct agent_end *a) {
    if (a->fault_id || a->spare || !a->exit_ns || (!a->code && !a->signal) ||
        !round_on_node(last, a->node) || !round_ended_well(last) ||
        was_disturbed(t, last, a->exit_ns))
        return true;
    finding_prove(f, last->workers[last->n - 1]->exit_seq, a->seq);
    return finding_fail(
        f, broken, "agents end 0 when every worker of the last round has",
        "all %zu workers of round %d ended 0, and the agent of %s ended with code %d, "
        "signal %d",
        last->n, last->number, a->node, a->code, a->signal);
}

/* A launcher that ends before its workers has not waited for them. */
static bool judge_order(const struct trial *t, struct finding *f, const struct agent_end *a) {
    if (!a->exit_ns || (a->fault_id && !a->told_to_leave) || a->signal)
        return true;
    for (size_t i = 0; i < t->rounds->workers_n; i++) {
        const struct worker *w = t->rounds->workers[i];
        if (!str_eq(w->node, a->node) || w->start_ns < a->start_ns || w->start_ns > a->exit_ns)
            continue;
        int64_t late = w->exit_ns - a->exit_ns;
        if (!w->exit_ns) {
            finding_unknown(f, broken, "rank %d of round %d on %s was never seen to end", w->rank,
                            w->round, w->node);
        } else if (late > 0 && late > lags_most_ns(t->lags, a->exit_ns, w->exit_ns)) {
            finding_fail(f, broken, "an agent ends after its workers",
                         "the agent of %s ended %.1f ms before rank %d of round %d", a->node,
                         (double)late / 1e6, w->rank, w->round);
        } else {
            continue;
        }
        finding_prove(f, a->seq, w->exit_seq ? w->exit_seq : w->start_seq);
        return false;
    }
    return true;
}

/* ---- how long the end takes ---- */

static const int64_t GRACE_NS = 30000000000; /* where the scenario sets none */

static bool says_outcome(const struct agent_end *a) {
    return a->exit_ns && !a->fault_id && !a->signal;
}

/* A fault on its node, its agent or the store had not ended before: then it may not have heard. */
static bool was_cut_off(const struct trial *t, const struct agent_end *a, int64_t since_ns) {
    for (size_t i = 0; i < t->incidents->n; i++) {
        const struct incident *in = t->incidents->v[i];
        bool over = in->recovered && in->recovered_ns < since_ns;
        if (in->in_force && in->fired_ns <= a->exit_ns && !over && check_names_node(in, a->node))
            return true;
    }
    return false;
}

/* From when it was to end: another one had, and so had the last of its own workers. */
static int64_t due_ns(const struct trial *t, const struct agent_end *first,
                      const struct agent_end *a) {
    int64_t due = first->exit_ns;
    for (size_t i = 0; i < t->rounds->workers_n; i++) {
        const struct worker *w = t->rounds->workers[i];
        if (str_eq(w->node, a->node) && w->exit_ns <= a->exit_ns && w->exit_ns > due)
            due = w->exit_ns;
    }
    return due;
}

static bool judge_late(const struct trial *t, struct finding *f, const struct agent_end *first,
                       const struct agent_end *a) {
    int64_t set = t->scenario->limits.grace_ns, bound = set ? set : GRACE_NS;
    int64_t due = due_ns(t, first, a), took = a->exit_ns - due;
    if (!says_outcome(a) || a->start_ns > first->exit_ns || took <= bound ||
        was_cut_off(t, a, first->exit_ns))
        return true;
    finding_prove(f, first->seq, a->seq);
    const char *expected = finding_expected(
        f, "every agent ended within %g s (limits.grace) of the first, and of its own workers",
        (double)bound / 1e9);
    if (took - bound < lags_most_ns(t->lags, due, a->exit_ns))
        return finding_unknown(f, broken, "%.1f s, but the harness itself was late by as much",
                               (double)took / 1e9);
    return finding_fail(f, broken, expected,
                        "the agent of %s ended %.1f s after that of %s, with no worker left",
                        a->node, (double)took / 1e9, first->node);
}

/* torchrun's agents wait for each other for 300 s; a template's as they like. */
static bool judge_end(const struct trial *t, struct finding *f, const struct agent_end *v,
                      size_t n) {
    const struct agent_end *first = NULL;
    if (check_by_torchrun(t->scenario) || check_template(t) || history_is_simulated(t->history))
        return true;
    for (size_t i = 0; i < n; i++)
        if (says_outcome(&v[i]) && (!first || v[i].exit_ns < first->exit_ns))
            first = &v[i];
    for (size_t i = 0; first && i < n; i++)
        if (!judge_late(t, f, first, &v[i]))
            return false;
    return true;
}

static bool stopped_by_harness(const struct trial *t) {
    const struct record *end = history_newest(t->history, SOURCE_HARNESS, "job-end");
    return end && !str_eq(record_text(end, "why"), "ended");
}

static bool judge_all(const struct trial *t, struct finding *f, const struct agent_end *v,
                      size_t n) {
    const struct rounds *rs = t->rounds;
    for (size_t i = 0; i + 1 < rs->n; i++)
        if (!judge_restart(t, f, rs->v[i], rs->v[i + 1], v, n))
            return false;
    for (size_t i = 0; i < n; i++)
        if (!judge_failure(t, f, rs->v[rs->n - 1], &v[i]) || !judge_order(t, f, &v[i]))
            return false;
    if (!judge_end(t, f, v, n))
        return false;
    return finding_pass(
        f, "%zu workers ended before their agents, and no round followed one that succeeded",
        rs->workers_n);
}

static bool judge(const struct trial *t, struct finding *f) {
    size_t n;
    const struct agent_end *agents = check_agents(t, &n);
    if (stopped_by_harness(t))
        return finding_skip(f, "the harness stopped the job");
    return check_sees_rounds(t, f) && judge_all(t, f, agents, n);
}

const struct check check_exits = {
    .name = "exits",
    .summary = "a group that succeeded is not started again and not reported as a failure",
    .text = "Success and failure are told by exit codes, worker by worker and agent by agent: no "
            "round follows one whose workers all ended 0, no agent ends otherwise than 0 after "
            "such a round, and none ends before its own workers, nor later than limits.grace after "
            "another has ended, and the last of its own workers. Where a fault hit a node or the "
            "store meanwhile, the good end may never have been told, and where a node was waiting "
            "to be taken in, that may have been decided before: neither is judged.",
    .example = "rankquake run scenarios/restart/worker-killed.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(KERNEL) | SOURCES(PROBE) | SOURCES(WIRE),
    .judge = judge,
};
