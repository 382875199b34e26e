#include "harness/sim/invariants/judging.h"

static void on_head(struct sim *c, const struct head_change *h) {
    int n = c->judge.n_form;
    if (h->to->phase == HEAD_RUN && (n < c->min || n > c->max))
        invariant_broken(c, &invariant_bounds, "a round of %d nodes, bounds %d:%d", n, c->min,
                         c->max);
}

const struct invariant invariant_bounds = {
    .name = "bounds",
    .number = "I3",
    .summary = "every round has as many nodes as the job allows",
    .text = "A round that runs has at least min and at most max nodes.",
    .check = "bounds",
    .on_head = on_head,
};
