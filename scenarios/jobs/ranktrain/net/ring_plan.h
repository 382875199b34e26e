/* ring_plan: which bytes a rank sends to the next and gets from the one before in each phase of a
 * collective round a ring. Numbers alone; nothing is sent here.
 *
 * To sum, the data is cut into as many chunks as there are ranks. In world - 1 phases a rank sends
 * the chunk it has just added to and adds the one that comes; then each chunk is complete on one
 * rank, and in another world - 1 phases the complete ones go round. Every rank sends
 * 2 (world - 1) / world of the data, which is the least that is possible. A reduce-scatter is the
 * first half, an all-gather the second. What one rank has goes to all in segments, so that all
 * links are busy at once. */
#pragma once

#include "scenarios/jobs/ranktrain/net/collective.h"

#include <stdbool.h>

struct ring_plan {
    int rank, world;
    const struct collective_call *call;
};

struct ring_move {
    bool sends, gets, adds;
    size_t out, out_bytes, in, in_bytes; /* where in the data they begin, and how many */
};

int ring_plan_phases(const struct ring_plan *p);
struct ring_move ring_plan_move(const struct ring_plan *p, int phase);

/* The most that comes in a phase in which it is added. */
size_t ring_plan_staging(const struct ring_plan *p);

/* The last phase in which this rank sends; -1: none. */
int ring_plan_last_sent(const struct ring_plan *p);
