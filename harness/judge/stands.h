/* stands: where the clocks of several hosts may stand within their bounds, so that each order of two
 * moments that is possible is met at one of them.
 *
 * There are always those where all are at an end, and for any two clocks those with one at its
 * earliest and the other at its latest; up to four clocks every choice of ends. That is all where what
 * is compared lasts longer than the bounds are wide. What is shorter may lie between the ends and be
 * met at neither: of bounds wider than STANDS_WIDE_NS there are also places evenly over each clock, and
 * such as bring a moment of a host close to one of another, of each kind as often as of any other. */
#pragma once

#include "harness/history/clocks.h"

enum { STANDS_WIDE_NS = 10000000 };

/* Sets of them, each one share per clock: 0 is its earliest, 1 its latest. */
struct stands {
    double **v;
    size_t n;
};
/* All memory is the arena's. */
void stands_choose(struct stands *ret, struct arena *a, const struct clocks *c,
                   const struct history *h);
