/* clock_bound: how far another host's clock is ahead of ours, as an interval that is never wrong, pure.
 *
 * A question says when it was asked (t1, ours), heard and answered (t2, t3, theirs) and when the
 * answer came (t4, ours). Nothing travels back in time, so theirs - ours lies between t3 - t4 and
 * t2 - t1. What several samples say is the intersection of their intervals; between two of them the
 * clocks may have drifted apart by CLOCK_DRIFT_PPM, and the interval is widened by as much. A mean
 * would be wrong by half of what the two ways differ in, which nobody can see. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CLOCK_DRIFT_PPM = 100 };

struct clock_sample {
    int64_t t1, t2, t3, t4; /* ns */
};

/* {0} knows nothing. */
struct clock_bound {
    int64_t low_ns, high_ns; /* theirs - ours, at at_ns of ours */
    int64_t at_ns;
    int64_t round_ns;        /* the shortest that was on its way, there and back */
    unsigned samples, steps; /* steps: so often a sample has contradicted those before */
};

/* Returns 0; -EINVAL: no clock makes such a sample, and it is not taken; -ESTALE: it contradicts what
 * was known, so that one of the clocks has been set. What is known begins anew with it. */
int clock_bound_add(struct clock_bound *b, const struct clock_sample *s);

/* What is known for this moment of ours. False: nothing is. */
bool clock_bound_at(const struct clock_bound *b, int64_t now_ns, int64_t *ret_low_ns,
                    int64_t *ret_high_ns);

/* A moment of theirs in our time: t_ns, give or take bound_ns, is there_ns by their clock. */
struct clock_stamp {
    int64_t t_ns, bound_ns, there_ns; /* bound_ns 0: it is of our clock, and never of another */
    int64_t late_ns; /* part of the bound: so long before there_ns it may have happened */
};
/* What they have stamped, and we have heard by now_ns: nothing comes from the future. It may have happened
 * late_ns before they stamped it. False: nothing is known of their clock. */
bool clock_bound_stamp(const struct clock_bound *b, int64_t theirs_ns, int64_t late_ns,
                       int64_t now_ns, struct clock_stamp *ret);

enum clock_order { CLOCK_ORDER_UNKNOWN, CLOCK_ORDER_BEFORE, CLOCK_ORDER_AFTER };
/* Whether what their clock has stamped came before or after what ours has. */
enum clock_order clock_bound_order(const struct clock_bound *b, int64_t theirs_ns, int64_t ours_ns);
