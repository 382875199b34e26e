/* goodput: how fast a run made the steps that count, beside the control run.
 *
 * A step counts when it is in the model that the job ends with: one that was made again counts
 * once, and what no later round resumed from counts not at all. The steps from the first that was
 * told to the last of these, at the pace of the control run, in per cent of the time that they
 * took; of a job that did not end well, of the time until it was over. That a step was made is the
 * job's word; when, is the stamp of whoever received it. */
#pragma once

#include "harness/history/history.h"
#include "harness/history/rounds.h"

struct goodput {
    const char *unknown;         /* why it cannot be said; NULL: it can, and all below is filled, or
                          * nobody has measured */
    double percent;              /* above 100 where the run was faster */
    int64_t steps;               /* that count, without the first */
    double span_s;               /* that they took */
    double control_s;            /* that as many take in the control run */
    bool printed;                /* steps were read from what workers print */
    int64_t first_seq, last_seq; /* records that prove it */
};

static inline bool goodput_is_known(const struct goodput *g) {
    return !g->unknown && g->steps > 0;
}

void goodput_measure(struct goodput *ret, const struct history *h, const struct rounds *rs);

/* The mean time from one step to the next, from the first that was told to the last, in a run
 * without faults; 0: no two were told. */
int64_t goodput_pace_ns(const struct rounds *rs);
