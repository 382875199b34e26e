/* Asks at the end of a schedule whether the job has ended. */
#include "harness/invariants/judge.h"

/* A round that did not run is proposed anew because somebody came or went: each at first, and with
 * every fault one that is lost and comes back. */
static void on_head(struct judge *j, const struct head_change *h) {
    const struct head_value *to = h->to;
    if (to->phase == HEAD_FORM && j->job.proposals_max &&
        to->round - to->last_round > j->job.proposals_max)
        invariant_broken(j, &invariant_progress,
                         "round %lld is proposed, and none has run since round %lld",
                         (long long)to->round, (long long)to->last_round);
}

static void on_end(struct judge *j, bool over, bool late) {
    judge_risk(j, INVARIANT_progress);
    if (over)
        return;
    if (late)
        invariant_broken(j, &invariant_progress, "no end %d s after the last fault and its round",
                         JUDGE_CALM_S);
    else
        invariant_broken(j, &invariant_progress,
                         "nothing is left to happen, and the job has not ended");
}

const struct invariant invariant_progress = {
    .name = "progress",
    .number = "I5",
    .summary = "when the faults are over, the job ends",
    .text = "Once everything has healed, and the work that was begun in the trouble is done, the "
            "job ends within a minute of virtual time as its workers decide, and every agent and "
            "every worker with it.",
    .check = "liveness",
    .outlasts = true,
    .on_head = on_head,
    .on_end = on_end,
};
