#include "harness/sim/invariants/judging.h"

static void on_head(struct sim *c, const struct head_change *h) {
    const struct head_value *to = h->to;
    if (h->settles && to->restarts != h->restarts)
        invariant_broken(c, &invariant_restarts, "%d restarts are written, %d rounds have failed",
                         to->restarts, h->restarts);
    if (to->restarts < c->judge.head.restarts)
        invariant_broken(c, &invariant_restarts, "restarts go back from %d to %d",
                         c->judge.head.restarts, to->restarts);
    if (to->phase == HEAD_RUN && to->restarts > c->max_restarts)
        invariant_broken(c, &invariant_restarts, "round %lld runs after %d restarts of %d",
                         (long long)to->round, to->restarts, c->max_restarts);
}

const struct invariant invariant_restarts = {
    .name = "restarts",
    .number = "I4",
    .summary = "a failed round costs one restart, one that lost a node none",
    .text = "The restarts that head tells are the rounds that ended by a failure and lost no "
            "member, as the judge counts them; they never go back, and no round runs beyond the "
            "budget.",
    .check = "restart_count",
    .on_head = on_head,
};
