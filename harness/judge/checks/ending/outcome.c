/* Compares how the job ended with what the scenario expects. */
#include "harness/judge/checks/check.h"

#include "base/str.h"

#include <stdio.h>

static const char broken[] = "Outcome: the job ends as the scenario expects.";

static bool succeeded_by_workers(const struct trial *t) {
    const struct round *last = rounds_last_complete(t->rounds);
    for (size_t i = 0; last && i < last->n; i++)
        if (!last->workers[i]->exit_ns || last->workers[i]->exit_code ||
            last->workers[i]->exit_signal)
            return false;
    return last != NULL;
}

static bool all_taken_away(const struct agent_end *v, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!v[i].fault_id)
            return false;
    return true;
}

/* Of a job whose agents were all taken away: the last of them was told to leave, and did. */
static bool was_told_to_end(const struct agent_end *v, size_t n) {
    const struct agent_end *last = NULL;
    for (size_t i = 0; i < n; i++) {
        if (v[i].spare)
            continue;
        if (!v[i].fault_id || !v[i].exit_ns)
            return false;
        if (!last || v[i].exit_ns > last->exit_ns)
            last = &v[i];
    }
    return last && last->told_to_leave && (last->signal || last->code > 128);
}

/* In the words of expect.outcome; "" when the agents' ends do not add up to one. */
static const char *outcome_of(const struct trial *t, const struct agent_end *v, size_t n,
                              struct finding *f) {
    size_t succeeded = 0, failed = 0, stopped = 0, unknown = 0, refused = 0, judged = 0;
    for (size_t i = 0; i < n; i++) {
        /* Of one that no fault had kept from the store for long enough it is no excuse. */
        unknown += v[i].fault_id && v[i].exit_ns && !v[i].signal && v[i].code == CHECK_EXIT_UNKNOWN;
        if (v[i].fault_id || v[i].spare)
            continue;
        judged++;
        refused += check_refused(t, &v[i]);
        succeeded += v[i].exit_ns && !v[i].signal && v[i].code == 0;
        failed += v[i].exit_ns && !v[i].signal && v[i].code == 1;
        stopped += v[i].exit_ns && (v[i].signal || v[i].code > 128);
        finding_prove(f, v[i].seq);
    }
    if (judged && succeeded == judged)
        return succeeded_by_workers(t) ? "succeeded" : "";
    if (judged && refused == judged && !t->rounds->workers_n &&
        t->scenario->expect.outcome == OUTCOME_REFUSED)
        return "refused";
    if (judged && failed == judged)
        return "failed";
    if (!judged && unknown)
        return "unknown";
    if (!judged)
        return was_told_to_end(v, n) ? "stopped" : "";
    return stopped && stopped + succeeded + failed == judged ? "stopped" : "";
}

/* A worker of the last round of which nobody knows that it succeeded; NULL: none. */
static const struct worker *unknown_end(const struct trial *t) {
    const struct round *last = rounds_last_complete(t->rounds);
    for (size_t i = 0; last && i < last->n; i++)
        if (!last->workers[i]->exit_known)
            return last->workers[i];
    return NULL;
}

static void describe(char *out, size_t size, const struct agent_end *v, size_t n) {
    size_t at = 0;
    *out = 0;
    for (size_t i = 0; i < n && at < size; i++) {
        const char *comma = i ? ", " : "";
        if (!v[i].exit_ns)
            at += (size_t)snprintf(out + at, size - at, "%s%s still ran", comma, v[i].node);
        else if (v[i].signal)
            at += (size_t)snprintf(out + at, size - at, "%s%s on signal %d", comma, v[i].node,
                                   v[i].signal);
        else
            at += (size_t)snprintf(out + at, size - at, "%s%s %d", comma, v[i].node, v[i].code);
    }
}

static bool judge_agents(const struct trial *t, struct finding *f, const struct agent_end *v,
                         size_t n) {
    static const char *const names[] = {"succeeded", "failed", "stopped", "unknown", "refused"};
    const char *wanted = names[t->scenario->expect.outcome], *seen = outcome_of(t, v, n, f);
    char ends[200];
    if (str_eq(wanted, seen)) {
        const struct worker *w = str_eq(seen, "succeeded") ? unknown_end(t) : NULL;
        return w ? check_unknown_exit(t, f, broken, w) : finding_pass(f, "%s", seen);
    }
    bool well = succeeded_by_workers(t), wants_failed = str_eq(wanted, "failed");
    if (all_taken_away(v, n) && (well || wants_failed))
        return finding_unknown(f, broken,
                               "%severy agent was taken away by a fault before it could end",
                               well ? "all workers ended well, but " : "");
    const char *expected = finding_expected(f, "outcome: %s", wanted);
    describe(ends, sizeof(ends), v, n);
    if (*seen)
        return finding_fail(f, broken, expected, "it %s%s (agents ended: %s)",
                            str_eq(seen, "stopped")   ? "was "
                            : str_eq(seen, "unknown") ? "is "
                                                      : "",
                            seen, ends);
    return finding_fail(f, broken, expected, "no one outcome (agents ended: %s)", ends);
}

static bool judge(const struct trial *t, struct finding *f) {
    size_t n;
    const struct agent_end *agents = check_agents(t, &n);
    return n ? judge_agents(t, f, agents, n)
             : finding_unknown(f, broken, "no agent was seen to start");
}

const struct check check_outcome = {
    .name = "outcome",
    .summary = "the job succeeds, fails or is stopped as the scenario expects",
    .text = "expect.outcome: succeeded (every agent ends 0 but those that a fault ended, and every "
            "worker of the last round), failed (every agent ends 1) or stopped (by a signal, "
            "or because all of its agents were taken away and the last one was told to leave), or "
            "unknown (every agent ends 69, as a fault has kept it from the store for --rdzv-conf "
            "give_up), or refused (every agent ends 64, of another launcher any but 0, and no "
            "worker was started: what it was told cannot be meant). "
            "Judged by the exit codes that the kernel gave, never by what was printed.",
    .example = "expect: {outcome: succeeded}",
    .class = CLASS_EXPECT,
    .leads = true,
    .sources = SOURCES(KERNEL) | SOURCES(PROBE),
    .judge = judge,
};
