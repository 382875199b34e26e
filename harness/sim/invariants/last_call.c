#include "harness/sim/invariants/judging.h"

#include <string.h>

/* When there were min sessions for the first time, counting those that have ended. */
static int64_t enough_ns(const struct sim *c, const char *inc) {
    int n = 0;
    for (size_t i = 0; i < c->n_joins; i++)
        if (strcmp(c->joins[i].inc, inc) == 0 && ++n == c->min)
            return c->joins[i].at_ns;
    return c->now_ns - c->last_call_ns; /* there never were: that is for bounds to say */
}

static void on_head(struct sim *c, const struct head_change *h) {
    const struct judge *j = &c->judge;
    if (h->to->phase != HEAD_FORM || j->has_head || j->n_form >= c->max)
        return;
    int64_t waited_ns = c->now_ns - enough_ns(c, h->key->inc);
    /* A coordinator counts on a clock of its own, which may run 1 % fast. */
    if (waited_ns < c->last_call_ns / 100 * 98)
        invariant_broken(c, &invariant_last_call,
                         "the first round has %d nodes of %d, %lld ms after there were %d",
                         j->n_form, c->max, (long long)(waited_ns / SIM_MS), c->min);
}

const struct invariant invariant_last_call = {
    .name = "last_call",
    .number = "I3",
    .summary = "the first round waits for more than min nodes, for the whole last_call",
    .text = "A first round with fewer than max nodes is formed only when last_call has passed "
            "since there were min.",
    .on_head = on_head,
};
