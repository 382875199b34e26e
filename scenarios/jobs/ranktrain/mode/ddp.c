/* Every rank holds the whole state, computes its shards and adds up the gradients with all others.
 *
 * The gradients are summed in buckets of some layers, from the last layer to the first, as they come
 * out of the backward pass of a rank's last shard: while the sums of one bucket go round, the layers
 * before it are computed. */
#include "scenarios/jobs/ranktrain/mode/mode.h"
#include "scenarios/jobs/ranktrain/mode/reducer.h"
#include "scenarios/jobs/ranktrain/mode/work.h"

#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>

enum { BUCKET = 32 * 1024 }; /* numbers at least, but for the last */

struct ddp {
    struct reducer *reducer; /* NULL: nothing to be done meanwhile */
    size_t open;             /* what lies from here on is summed, or will be */
};

static int ddp_open(struct trainer *t, struct err *err) {
    struct ddp *d = t->m = mem_new(struct ddp);
    if (t->o->world > 1 && t->o->overlap) {
        d->reducer = reducer_new(t, err);
        if (!d->reducer)
            return -EAGAIN;
    }
    return work_open(t, err);
}

/* Parameters from at on are those of all shards of this rank. */
static void put_bucket(struct trainer *t, size_t at, size_t least) {
    struct ddp *d = t->m;
    if (at >= d->open || d->open - at < least)
        return;
    reducer_put(d->reducer, t->sums + at, d->open - at);
    d->open = at;
}

/* The buckets are those of the network and so the same on all ranks; as many as the reducer takes at
 * most, and two more. */
static size_t bucket_of(const struct model *m) {
    size_t least = m->trained / (REDUCER_CALLS - 2) + 1;
    return least > BUCKET ? least : BUCKET;
}

static void on_layer(void *arg, int layer) {
    struct trainer *t = arg;
    put_bucket(t, t->model->layers[layer].trained_at, bucket_of(t->model));
}

/* Behind the parameters are the statistics and the loss, which are there at the end alone. */
static int sum_meanwhile(struct trainer *t, struct err *err) {
    struct ddp *d = t->m;
    const struct work_watch watch = {.ready = on_layer, .arg = t};
    size_t trained = t->model->trained;
    d->open = trained;
    int r = work_compute(t, t->state.step + 1, &watch, err);
    if (r < 0)
        return r;
    for (int i = t->model->n - 1; i >= 0 && d->open; i--) /* where nobody has called on_layer */
        on_layer(t, i);
    put_bucket(t, 0, 0);
    reducer_put(d->reducer, t->sums + trained, t->model->values - trained + 1);
    return reducer_wait(d->reducer, err);
}

static int ddp_step(struct trainer *t, double *ret_loss, struct err *err) {
    struct ddp *d = t->m;
    int r = d->reducer ? sum_meanwhile(t, err) : work_compute(t, t->state.step + 1, NULL, err);
    if (r == 0 && !d->reducer)
        r = trainer_sum(t, t->sums, t->model->values + 1, err);
    if (r == 0)
        *ret_loss = work_update(t);
    return r;
}

static void ddp_close(struct trainer *t) {
    struct ddp *d = t->m;
    if (d)
        reducer_free(d->reducer);
    free(d);
    work_close(t);
}

const struct mode mode_ddp = {
    .name = "ddp",
    .summary = "every rank holds everything, the gradients are summed",
    .open = ddp_open,
    .step = ddp_step,
    .close = ddp_close,
};
