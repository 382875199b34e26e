#include "scenarios/jobs/ranktrain/shards.h"
#include "scenarios/jobs/ranktrain/fixed_point.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static int owner_of(int shard, int world, int shards) {
    assert(shard >= 0 && shard < shards && world >= 1 && world <= shards);
    return shard * world / shards;
}

int shards_of(int rank, int world, int n, int ret_shards[SHARDS_MAX]) {
    int own = 0;
    for (int s = 0; s < n; s++)
        if (owner_of(s, world, n) == rank)
            ret_shards[own++] = s;
    return own;
}

static int diverged(int shard, struct err *err) {
    return err_say(err, -ERANGE,
                   "training has diverged: a gradient of shard %d is not a number or too large; "
                   "use a smaller --lr",
                   shard);
}

/* One after another. */
static int sum_batches(const struct shards_work *w, const float *values,
                       const struct compute_batch *batches, int n, int64_t *ret_sums,
                       int *ret_shard) {
    size_t length = w->model->values;
    memset(ret_sums, 0, (length + 1) * sizeof(*ret_sums));
    for (const struct compute_batch *b = batches; b < batches + n; b++) {
        double loss = w->compute->gradient(w->c, values, b->images, b->labels, w->scratch);
        if (!(loss < FIXED_POINT_LIMIT) || !fixed_point_add(ret_sums, w->scratch, length)) {
            *ret_shard = b->shard;
            return -ERANGE;
        }
        ret_sums[length] += fixed_point_of(loss);
    }
    return 0;
}

/* By the images that were given to be computed, not by what was meant to be. */
static void tell_read(const struct images *data, const struct compute_batch *batches, int n,
                      int batch, uint64_t *ret_read) {
    for (int s = 0; s < n; s++)
        for (int i = 0; i < batch; i++)
            *ret_read++ = images_number(data, batches[s].images[i]);
}

/* The images of a shard and their labels. */
static int gather(const struct images *data, const uint32_t *samples, int n,
                  struct compute_batch *ret, struct err *err) {
    for (int i = 0; i < n; i++) {
        ret->images[i] = images_read(data, samples[i], err);
        if (!ret->images[i])
            return -EBADMSG;
        ret->labels[i] = images_label(data, samples[i]);
    }
    return 0;
}

int shards_sum(const struct shards_work *w, const float *values, const uint32_t *samples,
               const int *shards, int n, int64_t *ret_sums, uint64_t *ret_read, struct err *err) {
    struct compute_batch batches[SHARDS_MAX];
    int shard = 0, batch = w->model->data.batch, r = 0;
    assert(n <= SHARDS_MAX);
    for (int s = 0; s < n && r == 0; s++) {
        batches[s].shard = shards[s];
        r = gather(w->data, samples + shards[s] * batch, batch, &batches[s], err);
    }
    if (r < 0)
        return r;
    r = w->compute->sum ? w->compute->sum(w->c, values, batches, n, ret_sums, &shard, err)
                        : sum_batches(w, values, batches, n, ret_sums, &shard);
    if (r == 0 && ret_read)
        tell_read(w->data, batches, n, batch, ret_read);
    return r == -ERANGE ? diverged(shard, err) : r;
}
