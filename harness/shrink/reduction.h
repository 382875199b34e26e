/* reduction: the search for the smallest scenario that still fails: delta debugging over the
 * entries of the timeline and the nodes, then whatever else can be simpler, until nothing can be
 * left out. The order is fixed, so the same answers give the same scenario. Pure: what a scenario
 * comes to is answered by whoever calls. */
#pragma once

#include "harness/scenario/scenario.h"
#include "harness/shrink/delta.h"

struct reduction_spec {
    const char *const *checks; /* that fail; NULL-ended */
    bool fixed;                /* only what is expected besides them may go */
    const bool *fired;         /* by entry of the timeline: it did, in the recorded run */
    const char *const *struck; /* by entry: the one target it had, "n1/0"; NULL */
    /* what: what is different from the last that failed in the same way, in words. */
    enum delta_answer (*try)(void *arg, const struct scenario *s, const char *what);
    void *arg;
};

struct reduction {
    const struct scenario *smallest; /* in the arena or given; was tried; NULL: it failed never */
    bool stopped;                    /* there may be a smaller one */
};

void reduction_run(struct arena *a, const struct scenario *given, const struct reduction_spec *spec,
                   struct reduction *ret);
