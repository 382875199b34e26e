/* part: which part of a state each of several ranks holds, and what they do with their parts
 * together. The trained values are cut evenly; the running statistics behind them are the last
 * rank's. */
#pragma once

#include "scenarios/jobs/ranktrain/trainer.h"

#include "base/err.h"

struct state_range part_of_moments(const struct trainer *t, int rank);
struct state_range part_of_weights(const struct trainer *t, int rank);

/* For a collective over the values of a range, of size bytes each: where each rank's part of it
 * begins. */
void part_bounds(const struct trainer *t, struct state_range range, size_t size,
                 size_t ret_bounds[BOOTSTRAP_MEMBERS + 1]);

/* Hands out the whole, of which own is this rank's part, block by block from the first number to the
 * last, on every rank. Every rank calls it. */
typedef struct state_range part_of(const struct trainer *t, int rank);
typedef void part_take(void *arg, size_t at, const float *x, size_t n);
int part_visit(struct trainer *t, part_of *of, const float *own, part_take *take, void *arg,
               struct err *err);

/* As gather of mode.h; the weights are in parts of part_of_weights or whole on every rank. */
int part_gather_of(struct trainer *t, part_of *moments, struct state *ret, struct err *err);

/* As gather and hash of mode.h, for modes whose weights or moments are in parts. */
int part_gather(struct trainer *t, struct state *ret, struct err *err);
int part_hash(struct trainer *t, char ret[65], struct err *err);
