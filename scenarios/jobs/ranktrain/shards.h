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
    SHARDS_BATCH = SHARDS * LENET_BATCH, /* samples of a step */
    SHARDS_LOSS = LENET_PARAMETERS,      /* the place of the loss behind the gradient's sums */
    SHARDS_SUMS = LENET_PARAMETERS + 1
};

/* Writes the shards of a rank in rising order; returns how many. world in 1..SHARDS. */
int shards_of(int rank, int world, int ret_shards[SHARDS]);

/* Computes the shards and leaves the sum of their gradients and losses, in fixed point, in
 * ret_sums; samples are the SHARDS_BATCH indices of the step. Returns 0, -ERANGE when training has
 * diverged, or an error of the computation. scratch holds one gradient. ret_read (NULL: nobody asks)
 * takes the numbers of the n * LENET_BATCH samples that were computed. */
int shards_sum(const struct compute *compute, void *c, const float *parameters,
               const struct idx *data, const uint32_t *samples, const int *shards, int n,
               float scratch[LENET_PARAMETERS], int64_t ret_sums[SHARDS_SUMS], uint64_t *ret_read,
               struct err *err);
