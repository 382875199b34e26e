#include "scenarios/jobs/ranktrain/shards.h"
#include "scenarios/jobs/ranktrain/fixed_point.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

int shards_diverged(int shard, const char *where, struct err *err) {
    return err_say(err, -ERANGE,
                   "training has diverged: of shard %d, %s is not a number or too large; use a "
                   "smaller --lr",
                   shard, where);
}

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

static int diverged(const struct shards_work *w, int shard, struct err *err) {
    char where[COMPUTE_LABEL] = "";
    if (w->compute->blame)
        w->compute->blame(w->c, w->scratch, where);
    return shards_diverged(shard, *where ? where : "a gradient", err);
}

struct summing {
    const struct shards_work *w;
    int64_t *sums;
    bool bad;
};

/* A layer of the last shard is through. */
static void add_layer(void *arg, int layer) {
    struct summing *s = arg;
    const struct model_layer *l = &s->w->model->layers[layer];
    if (!fixed_point_add(s->sums + l->trained_at, s->w->scratch + l->trained_at, l->trained))
        s->bad = true;
    if (!s->bad)
        s->w->ready(s->w->arg, layer);
}

/* All at once, or, where somebody waits for them, what a layer has of parameters as soon as it is
 * there and the statistics at the end. */
static bool add_batch(const struct shards_work *w, const float *values,
                      const struct compute_batch *b, bool watched, int64_t *sums) {
    const struct model *m = w->model;
    struct summing s = {.w = w, .sums = sums};
    const struct pass_watch watch = {.layer = add_layer, .arg = &s};
    double loss = w->compute->gradient(w->c, values, b->images, b->labels, w->scratch,
                                       watched ? &watch : NULL);
    size_t from = watched ? m->trained : 0;
    if (s.bad || !(loss < FIXED_POINT_LIMIT) ||
        !fixed_point_add(sums + from, w->scratch + from, m->values - from))
        return false;
    sums[m->values] += fixed_point_of(loss);
    return true;
}

/* One after another. */
static int sum_batches(const struct shards_work *w, const float *values,
                       const struct compute_batch *batches, int n, int64_t *ret_sums,
                       int *ret_shard) {
    memset(ret_sums, 0, (w->model->values + 1) * sizeof(*ret_sums));
    for (int i = 0; i < n; i++)
        if (!add_batch(w, values, &batches[i], w->ready && i == n - 1, ret_sums)) {
            *ret_shard = batches[i].shard;
            return -ERANGE;
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

int shards_read(const struct images *data, const uint32_t *samples, int n,
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
    struct compute_batch batches[SHARDS_MAX] = {{0}};
    const struct pass_watch watch = {.layer = w->ready, .arg = w->arg};
    struct compute_wrong wrong = {0};
    int shard = 0, batch = w->model->data.batch, r = 0;
    assert(n <= SHARDS_MAX);
    for (int s = 0; s < n && r == 0; s++) {
        batches[s].shard = shards[s];
        r = shards_read(w->data, samples + shards[s] * batch, batch, &batches[s], err);
    }
    if (r < 0)
        return r;
    if (w->compute->sum)
        r = w->compute->sum(w->c, values, batches, n, w->ready ? &watch : NULL, ret_sums, &wrong,
                            err);
    else
        r = sum_batches(w, values, batches, n, ret_sums, &shard);
    if (r == 0 && ret_read)
        tell_read(w->data, batches, n, batch, ret_read);
    if (r == -ERANGE)
        return w->compute->sum ? shards_diverged(wrong.shard, wrong.where, err)
                               : diverged(w, shard, err);
    return r;
}
