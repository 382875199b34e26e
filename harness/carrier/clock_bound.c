#include "harness/carrier/clock_bound.h"

#include <errno.h>

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Rounded up: a bound may be wider than needed, and never narrower. */
static int64_t drift_ns(int64_t between_ns) {
    int64_t n = between_ns < 0 ? -between_ns : between_ns;
    return n / (1000000 / CLOCK_DRIFT_PPM) + 1;
}

int clock_bound_add(struct clock_bound *b, const struct clock_sample *s) {
    int64_t round = s->t4 - s->t1, there = s->t3 - s->t2;
    int64_t low = s->t3 - s->t4 - drift_ns(round), high = s->t2 - s->t1 + drift_ns(round);
    int64_t old_low, old_high;
    if (round < 0 || there < 0 || low > high)
        return -EINVAL;
    bool was_known = clock_bound_at(b, s->t4, &old_low, &old_high);
    bool stepped = was_known && (low > old_high || high < old_low);
    if (was_known && !stepped) {
        low = larger(low, old_low);
        high = smaller(high, old_high);
    }
    b->round_ns = was_known ? smaller(b->round_ns, round - there) : round - there;
    b->low_ns = low;
    b->high_ns = high;
    b->at_ns = s->t4;
    b->samples++;
    b->steps += stepped;
    return stepped ? -ESTALE : 0;
}

bool clock_bound_at(const struct clock_bound *b, int64_t now_ns, int64_t *ret_low_ns,
                    int64_t *ret_high_ns) {
    if (!b->samples)
        return false;
    int64_t wider = now_ns == b->at_ns ? 0 : drift_ns(now_ns - b->at_ns);
    *ret_low_ns = b->low_ns - wider;
    *ret_high_ns = b->high_ns + wider;
    return true;
}

/* The clocks may have drifted apart until then, or, of what lies before the last sample, since. */
static bool bound_around(const struct clock_bound *b, int64_t theirs_ns, int64_t now_ns,
                         int64_t *ret_low_ns, int64_t *ret_high_ns) {
    int64_t low, high;
    if (!clock_bound_at(b, now_ns, &low, &high))
        return false;
    int64_t first = theirs_ns - high;
    int64_t since = b->at_ns - first > now_ns - b->at_ns ? first : now_ns;
    return clock_bound_at(b, since, ret_low_ns, ret_high_ns);
}

bool clock_bound_stamp(const struct clock_bound *b, int64_t theirs_ns, int64_t late_ns,
                       int64_t now_ns, struct clock_stamp *ret) {
    int64_t low, high;
    if (!bound_around(b, theirs_ns, now_ns, &low, &high))
        return false;
    int64_t first = theirs_ns - high, last = theirs_ns - low;
    last = smaller(last, now_ns);
    first = smaller(first, last); /* their clock has been set, which the next sample shows */
    int64_t half = (last - first + larger(late_ns, 0) + 1) / 2;
    *ret = (struct clock_stamp){.t_ns = last - half,
                                .bound_ns = larger(half, 1),
                                .there_ns = theirs_ns,
                                .late_ns = larger(late_ns, 0)};
    return true;
}

enum clock_order clock_bound_order(const struct clock_bound *b, int64_t theirs_ns,
                                   int64_t ours_ns) {
    int64_t low, high;
    if (!clock_bound_at(b, ours_ns, &low, &high))
        return CLOCK_ORDER_UNKNOWN;
    if (theirs_ns - low < ours_ns) /* the latest that it can have been of ours */
        return CLOCK_ORDER_BEFORE;
    return theirs_ns - high > ours_ns ? CLOCK_ORDER_AFTER : CLOCK_ORDER_UNKNOWN;
}
