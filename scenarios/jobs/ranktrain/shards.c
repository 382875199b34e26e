#include "scenarios/jobs/ranktrain/shards.h"
#include "scenarios/jobs/ranktrain/fixed_point.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static int owner_of(int shard, int world) {
    assert(shard >= 0 && shard < SHARDS && world >= 1 && world <= SHARDS);
    return shard * world / SHARDS;
}

int shards_of(int rank, int world, int ret_shards[SHARDS]) {
    int n = 0;
    for (int s = 0; s < SHARDS; s++)
        if (owner_of(s, world) == rank)
            ret_shards[n++] = s;
    return n;
}

static int diverged(int shard, struct err *err) {
    return err_say(err, -ERANGE,
                   "training has diverged: a gradient of shard %d is not a number or too large; "
                   "use a smaller --lr",
                   shard);
}

/* One after another. */
static int sum_batches(const struct compute *compute, void *c, const float *parameters,
                       const struct compute_batch *batches, int n, float *scratch,
                       int64_t *ret_sums, int *ret_shard) {
    memset(ret_sums, 0, SHARDS_SUMS * sizeof(*ret_sums));
    for (const struct compute_batch *b = batches; b < batches + n; b++) {
        double loss = compute->gradient(c, parameters, b->images, b->labels, scratch);
        if (!(loss < FIXED_POINT_LIMIT) || !fixed_point_add(ret_sums, scratch, LENET_PARAMETERS)) {
            *ret_shard = b->shard;
            return -ERANGE;
        }
        ret_sums[SHARDS_LOSS] += fixed_point_of(loss);
    }
    return 0;
}

/* By the images that were given to be computed, not by what was meant to be. */
static void tell_read(const struct idx *data, const struct compute_batch *batches, int n,
                      uint64_t *ret_read) {
    for (int s = 0; s < n; s++)
        for (int i = 0; i < LENET_BATCH; i++)
            *ret_read++ = idx_number(data, batches[s].images[i]);
}

int shards_sum(const struct compute *compute, void *c, const float *parameters,
               const struct idx *data, const uint32_t *samples, const int *shards, int n,
               float scratch[LENET_PARAMETERS], int64_t ret_sums[SHARDS_SUMS], uint64_t *ret_read,
               struct err *err) {
    struct compute_batch batches[SHARDS];
    int shard = 0;
    assert(n <= SHARDS);
    for (int s = 0; s < n; s++) {
        const uint32_t *index = samples + shards[s] * LENET_BATCH;
        batches[s].shard = shards[s];
        for (int i = 0; i < LENET_BATCH; i++) {
            batches[s].images[i] = idx_image(data, index[i]);
            batches[s].labels[i] = idx_label(data, index[i]);
        }
    }
    int r = compute->sum
                ? compute->sum(c, parameters, batches, n, ret_sums, &shard, err)
                : sum_batches(compute, c, parameters, batches, n, scratch, ret_sums, &shard);
    if (r == 0 && ret_read)
        tell_read(data, batches, n, ret_read);
    return r == -ERANGE ? diverged(shard, err) : r;
}
