#include "scenarios/jobs/ranktrain/shards.h"
#include "scenarios/jobs/ranktrain/fixed_point.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

int shards_owner(int shard, int world) {
    assert(shard >= 0 && shard < SHARDS && world >= 1 && world <= SHARDS);
    return shard * world / SHARDS;
}

int shards_of(int rank, int world, int ret_shards[SHARDS]) {
    int n = 0;
    for (int s = 0; s < SHARDS; s++)
        if (shards_owner(s, world) == rank)
            ret_shards[n++] = s;
    return n;
}

int shards_sum(const struct compute *compute, void *c, const float *parameters,
               const struct idx *data, const uint32_t *samples, const int *shards, int n,
               float scratch[LENET_PARAMETERS], int64_t ret_sums[SHARDS_SUMS], struct err *err) {
    memset(ret_sums, 0, SHARDS_SUMS * sizeof(*ret_sums));
    for (int s = 0; s < n; s++) {
        const uint32_t *index = samples + shards[s] * LENET_BATCH;
        const uint8_t *images[LENET_BATCH];
        uint8_t labels[LENET_BATCH];
        for (int i = 0; i < LENET_BATCH; i++) {
            images[i] = idx_image(data, index[i]);
            labels[i] = idx_label(data, index[i]);
        }
        double loss = compute->gradient(c, parameters, images, labels, scratch);
        if (!(loss < FIXED_POINT_LIMIT) || !fixed_point_add(ret_sums, scratch, LENET_PARAMETERS))
            return err_say(err, -ERANGE,
                           "training has diverged: a gradient of shard %d is not a number or too "
                           "large; use a smaller --lr",
                           shards[s]);
        ret_sums[SHARDS_LOSS] += fixed_point_of(loss);
    }
    return 0;
}
