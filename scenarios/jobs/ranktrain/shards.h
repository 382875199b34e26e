/* shards: the global batch, twelve logical shards of eight samples, dealt out to the ranks.
 *
 * Every shard belongs to exactly one rank, and the shards of a rank are contiguous. What is summed
 * is each shard's gradient in fixed point, so the sum does not depend on who computed what. */
#pragma once

#include "scenarios/jobs/ranktrain/compute.h"
#include "scenarios/jobs/ranktrain/data/idx.h"

#include "base/err.h"

#include <stdint.h>

enum {
    SHARDS = 12,
    SHARDS_BATCH = SHARDS * LAYER_BATCH /* samples of a step */
};

/* Writes the shards of a rank in rising order; returns how many. world in 1..SHARDS. */
int shards_of(int rank, int world, int ret_shards[SHARDS]);

/* Who computes, and of what. */
struct shards_work {
    const struct compute *compute;
    void *c;
    const struct model *model;
    const struct idx *data;
    float *scratch; /* one gradient */
};

/* Computes the shards and leaves the sum of their gradients, and behind it of their losses, in fixed
 * point, in ret_sums: one more number than the model has values. samples are the SHARDS_BATCH
 * indices of the step. Returns 0, -ERANGE when training has diverged, or an error of the
 * computation. ret_read (NULL: nobody asks) takes the numbers of the n * LAYER_BATCH samples that
 * were computed. */
int shards_sum(const struct shards_work *w, const float *values, const uint32_t *samples,
               const int *shards, int n, int64_t *ret_sums, uint64_t *ret_read, struct err *err);
