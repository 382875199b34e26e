/* shards: the global batch, twelve logical shards of eight samples unless said, dealt out to the
 * ranks.
 *
 * Every shard belongs to exactly one rank, and the shards of a rank are contiguous. What is summed
 * is each shard's gradient in fixed point, so the sum does not depend on who computed what. */
#pragma once

#include "scenarios/jobs/ranktrain/compute.h"
#include "scenarios/jobs/ranktrain/data/images.h"

#include "base/err.h"

#include <stdint.h>

enum {
    SHARDS = 12, /* unless said */
    SHARDS_MAX = 64,
    SHARDS_BATCH = SHARDS * LAYER_BATCH /* samples of a step, unless said */
};

/* Writes those of n shards that are a rank's, in rising order; returns how many. world in 1..n. */
int shards_of(int rank, int world, int n, int ret_shards[SHARDS_MAX]);

/* The sentence of a number that is none; where: "the output of layer 3 (conv)". Returns -ERANGE. */
int shards_diverged(int shard, const char *where, struct err *err);

/* Who computes, and of what. */
struct shards_work {
    const struct compute *compute;
    void *c;
    const struct model *model;
    const struct images *data;
    float *scratch; /* one gradient; of who computes one at a time alone */

    /* NULL, or called when the sums of a layer's gradient are those of all shards: from the last
     * layer to the first, while the others are still computed. */
    void (*ready)(void *arg, int layer);
    void *arg;
};

/* The n images of a shard and their labels. Returns 0, or -EBADMSG when one is not what it was. */
int shards_read(const struct images *data, const uint32_t *samples, int n,
                struct compute_batch *ret, struct err *err);

/* Computes the shards and leaves the sum of their gradients, and behind it of their losses, in fixed
 * point, in ret_sums: one more number than the model has values. samples are the indices of the
 * step. Returns 0, -ERANGE when training has diverged, -EBADMSG: an image is damaged, or an error of
 * the computation. ret_read (NULL: nobody asks) takes the numbers of the samples of the n shards that
 * were computed. */
int shards_sum(const struct shards_work *w, const float *values, const uint32_t *samples,
               const int *shards, int n, int64_t *ret_sums, uint64_t *ret_read, struct err *err);
