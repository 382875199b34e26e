/* Counts the nodes of each round. */
#include "harness/invariants/judge.h"

static void on_head(struct judge *j, const struct head_change *h) {
    int n = j->n_form;
    if (h->to->phase != HEAD_RUN)
        return;
    judge_risk(j, INVARIANT_bounds);
    if (n < j->job.min || n > j->job.max)
        invariant_broken(j, &invariant_bounds, "a round of %d nodes, bounds %d:%d", n, j->job.min,
                         j->job.max);
}

const struct invariant invariant_bounds = {
    .name = "bounds",
    .number = "I3",
    .summary = "every round has as many nodes as the job allows",
    .text = "A round that runs has at least min and at most max nodes.",
    .check = "bounds",
    .on_head = on_head,
};
