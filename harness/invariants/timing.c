/* Holds the times that a job begins with against the inequalities of the protocol. */
#include "harness/invariants/judge.h"

/* From SIGKILL to the last instruction; and beats that an embedded store takes in a second. */
#define KILL_NS (100 * JUDGE_MS)
enum { BEATS_S = 2000, CLOCKS_PERCENT = 1 };

static int64_t hb_ns(const struct judged_job *job) {
    int64_t least_ns = job->max * 1000 * JUDGE_MS / BEATS_S;
    return least_ns > job->hb_ns ? least_ns : job->hb_ns;
}

static void on_put(struct judge *j, const struct op *op) {
    const struct timing *t = &op->value->cur.timing;
    int64_t slow = 100 - CLOCKS_PERCENT, fast = 100 + CLOCKS_PERCENT;
    if (!j->times || !j->job.hb_ns)
        return;
    judge_risk(j, INVARIANT_timing);
    if (t->hb_ns != hb_ns(&j->job))
        invariant_broken(j, &invariant_timing, "beats are %lld ms apart, with %d nodes %lld",
                         (long long)(t->hb_ns / JUDGE_MS), j->job.max,
                         (long long)(hb_ns(&j->job) / JUDGE_MS));
    else if (t->fence_ns < 3 * t->hb_ns || t->hard_ns < t->fence_ns + 50 * JUDGE_MS ||
             (t->hard_ns + KILL_NS) * fast > t->suspect_ns * slow)
        invariant_broken(j, &invariant_timing,
                         "a node may live on when it is given up: fence %lld, hard %lld, suspect "
                         "%lld ms",
                         (long long)(t->fence_ns / JUDGE_MS), (long long)(t->hard_ns / JUDGE_MS),
                         (long long)(t->suspect_ns / JUDGE_MS));
}

const struct invariant invariant_timing = {
    .name = "timing",
    .number = "CONTRACT",
    .summary = "the times of a job fit together, and to the number of its nodes",
    .text = "Beats come as often as the profile says, or as seldom as a store can take them from "
            "all nodes: 2,000 in a second. One may be lost before the fence; the kernel's deadline "
            "is 50 ms behind that; and whoever counts suspect on a clock that is 1 % fast finds "
            "workers dead whose deadline is on one that is 1 % slow.",
    .kinds = 1u << KEY_CUR,
    .on_put = on_put,
};
