/* Measures how long the first round was open. */
#include "harness/invariants/judge.h"

#include <string.h>

/* When there were min sessions for the first time, counting those that have ended. */
static int64_t enough_ns(const struct judge *j, const char *inc) {
    int n = 0;
    for (size_t i = 0; i < j->times->n_joins; i++)
        if (strcmp(j->times->joins[i].inc, inc) == 0 && ++n == j->job.min)
            return j->times->joins[i].at_ns;
    return j->now_ns - j->job.last_call_ns; /* there never were: that is for bounds to say */
}

static void on_head(struct judge *j, const struct head_change *h) {
    if (!j->times || h->to->phase != HEAD_FORM || j->has_head || j->n_form >= j->job.max)
        return;
    judge_risk(j, INVARIANT_last_call);
    int64_t waited_ns = j->now_ns - enough_ns(j, h->key->inc);
    /* A coordinator counts on a clock of its own, which may run 1 % fast. */
    if (waited_ns < j->job.last_call_ns / 100 * 98)
        invariant_broken(j, &invariant_last_call,
                         "the first round has %d nodes of %d, %lld ms after there were %d",
                         j->n_form, j->job.max, (long long)(waited_ns / JUDGE_MS), j->job.min);
}

const struct invariant invariant_last_call = {
    .name = "last_call",
    .number = "I3",
    .summary = "the first round waits for more than min nodes, for the whole last_call",
    .text = "A first round with fewer than max nodes is formed only when last_call has passed "
            "since there were min.",
    .on_head = on_head,
};
