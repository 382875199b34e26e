/* Every rank holds a part of the weights, of the gradients' sums and of what the optimizer keeps. A
 * layer's weights are gathered when it is computed and given back behind it; its gradients' sums are
 * scattered as soon as they are there. What a rank holds besides is one layer.
 *
 * All shards of a rank go through a layer before the next one is gathered. */
#include "scenarios/jobs/ranktrain/fixed_point.h"
#include "scenarios/jobs/ranktrain/mode/mode.h"
#include "scenarios/jobs/ranktrain/mode/part.h"
#include "scenarios/jobs/ranktrain/mode/work.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fsdp {
    size_t unit;    /* numbers of the largest layer, with its statistics */
    float *weights; /* of one layer */
    int64_t *sums;  /* of one layer */
    int64_t *own;   /* this rank's part of all sums */
    int64_t
        *shared; /* sums of the running statistics, and behind them of what shared_numbers says */
    struct compute_batch batches[SHARDS_MAX];
};

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* The statistics, the loss, and how many ranks have been asked to end. */
static size_t shared_numbers(const struct trainer *t) {
    return t->model->values - t->model->trained + 2;
}

static int take_state(struct trainer *t, struct fsdp *f, struct err *err) {
    struct state_range held = part_of_weights(t, t->o->rank);
    struct ration *ration = &t->ration;
    int r = work_open_state(t, held, part_of_moments(t, t->o->rank), err);
    if (r < 0)
        return r;
    f->weights = ration_alloc(ration, RATION_PARAMETERS, f->unit, sizeof(float), err);
    if (f->weights)
        f->sums = ration_alloc(ration, RATION_GRADIENTS, f->unit, sizeof(int64_t), err);
    if (f->sums)
        f->own =
            ration_alloc(ration, RATION_GRADIENTS, state_range_length(held), sizeof(int64_t), err);
    if (f->own)
        f->shared = ration_alloc(ration, RATION_GRADIENTS, shared_numbers(t), sizeof(int64_t), err);
    return f->shared ? 0 : -ENOMEM;
}

static int fsdp_open(struct trainer *t, struct err *err) {
    struct fsdp *f = t->m = mem_new(struct fsdp);
    for (int i = 0; i < t->model->n; i++)
        f->unit = larger(f->unit, t->model->layers[i].trained + t->model->layers[i].running);
    int r = take_state(t, f, err);
    return r == 0 ? work_count_compute(&t->ration, t->compute, t->c, err) : r;
}

/* The values of a range come from those that hold them to ret on every rank. */
static int gather_range(struct trainer *t, struct state_range range, float *ret, struct err *err) {
    size_t bounds[BOOTSTRAP_MEMBERS + 1];
    const struct state *s = &t->state;
    size_t lo = range.lo > s->held.lo ? range.lo : s->held.lo;
    size_t hi = range.hi < s->held.hi ? range.hi : s->held.hi;
    if (lo < hi)
        memcpy(ret + (lo - range.lo), s->weights + (lo - s->held.lo), (hi - lo) * sizeof(*ret));
    part_bounds(t, range, sizeof(*ret), bounds);
    struct collective_call call = {.op = COLLECTIVE_ALL_GATHER,
                                   .data = ret,
                                   .bytes = state_range_length(range) * sizeof(*ret),
                                   .bounds = bounds};
    return call.bytes ? trainer_exchange(t, &call, err) : 0;
}

/* The weights of a layer, and behind them, for who does not learn, its statistics. */
static int gather_layer(struct trainer *t, const struct model_layer *l, bool learning,
                        struct err *err) {
    struct fsdp *f = t->m;
    int r = gather_range(t, (struct state_range){l->trained_at, l->trained_at + l->trained},
                         f->weights, err);
    if (r == 0 && !learning)
        r = gather_range(t, (struct state_range){l->running_at, l->running_at + l->running},
                         f->weights + l->trained, err);
    return r;
}

/* The sums of a layer's gradient: each rank keeps its part of them. */
static int scatter_layer(struct trainer *t, const struct model_layer *l, struct err *err) {
    struct fsdp *f = t->m;
    size_t bounds[BOOTSTRAP_MEMBERS + 1];
    struct state_range range = {l->trained_at, l->trained_at + l->trained};
    part_bounds(t, range, sizeof(*f->sums), bounds);
    struct collective_call call = {.op = COLLECTIVE_REDUCE_SCATTER,
                                   .data = f->sums,
                                   .bytes = l->trained * sizeof(*f->sums),
                                   .bounds = bounds};
    int r = trainer_exchange(t, &call, err);
    size_t from = bounds[t->o->rank], to = bounds[t->o->rank + 1];
    if (r == 0 && from < to)
        memcpy(f->own + (range.lo + from / sizeof(*f->sums) - t->state.held.lo),
               (const char *)f->sums + from, to - from);
    return r;
}

/* The sentence of what a computation has found wrong. */
static int judge(int r, const struct compute_wrong *w, struct err *err) {
    return r == -ERANGE ? shards_diverged(w->shard, w->where, err) : r;
}

static int forward_layer(struct trainer *t, int layer, struct err *err) {
    struct fsdp *f = t->m;
    const struct model_layer *l = &t->model->layers[layer];
    struct compute_wrong wrong = {0};
    int r = gather_layer(t, l, true, err);
    if (r < 0)
        return r;
    return judge(t->compute->layers->forward(t->c, layer, f->weights,
                                             f->shared + (l->running_at - t->model->trained),
                                             &wrong, err),
                 &wrong, err);
}

static int backward_layer(struct trainer *t, int layer, struct err *err) {
    struct fsdp *f = t->m;
    const struct model_layer *l = &t->model->layers[layer];
    struct compute_wrong wrong = {0};
    int r = gather_layer(t, l, true, err);
    if (r == 0)
        r = judge(t->compute->layers->backward(t->c, layer, f->weights, f->sums, &wrong, err),
                  &wrong, err);
    return r == 0 && l->trained ? scatter_layer(t, l, err) : r;
}

static int begin_batches(struct trainer *t, struct err *err) {
    struct fsdp *f = t->m;
    int batch = t->model->data.batch, r = 0;
    const uint32_t *samples = sampler_step(&t->sampler, t->state.step + 1);
    bool asked = rankquake_asked(&t->q, RANKQUAKE_ASK_SAMPLES);
    for (int i = 0; i < t->n_shards && r == 0; i++) {
        struct compute_batch *b = &f->batches[i];
        b->shard = t->shards[i];
        r = shards_read(&t->data.train, samples + t->shards[i] * batch, batch, b, err);
        for (int k = 0; k < batch && asked && r == 0; k++)
            t->read[i * batch + k] = images_number(&t->data.train, b->images[k]);
    }
    memset(f->shared, 0, shared_numbers(t) * sizeof(*f->shared));
    return r == 0 ? t->compute->layers->begin(t->c, f->batches, t->n_shards, true, err) : r;
}

static int take_losses(struct trainer *t, struct err *err) {
    struct fsdp *f = t->m;
    struct compute_wrong wrong = {0};
    int64_t *loss = f->shared + (t->model->values - t->model->trained);
    return judge(t->compute->layers->loss(t->c, loss, &wrong, err), &wrong, err);
}

static int compute(struct trainer *t, struct err *err) {
    int64_t begun_ns = deadline_now_ns();
    int r = begin_batches(t, err);
    for (int i = 0; i < t->model->n && r == 0; i++)
        r = forward_layer(t, i, err);
    if (r == 0)
        r = take_losses(t, err);
    for (int i = t->model->n - 1; i >= 0 && r == 0; i--)
        r = backward_layer(t, i, err);
    return r == 0 ? work_floor(t, begun_ns, err) : r;
}

static int fsdp_step(struct trainer *t, double *ret_loss, struct err *err) {
    struct fsdp *f = t->m;
    size_t statistics = t->model->values - t->model->trained;
    size_t trained = state_range_length(t->state.held_moments);
    int r = compute(t, err);
    f->shared[statistics + 1] = asked_is(&t->asked);
    if (r == 0)
        r = trainer_sum(t, f->shared, shared_numbers(t), err);
    if (r < 0)
        return r;
    t->leaves = f->shared[statistics + 1] > 0;
    if (state_range_length(t->state.held) > trained) /* the last rank's */
        memcpy(f->own + trained, f->shared, statistics * sizeof(*f->own));
    work_update_part(t, f->own, t->state.weights, state_range_length(t->state.held));
    *ret_loss = fixed_point_value(f->shared[statistics]) / (double)t->o->batch_size;
    return 0;
}

static int fsdp_classify(struct trainer *t, const uint8_t *const *images, uint8_t *ret_classes,
                         struct err *err) {
    struct fsdp *f = t->m;
    const struct compute_layers *layers = t->compute->layers;
    struct compute_wrong wrong;
    int r = 0;
    if (images) {
        memcpy(f->batches[0].images, images, (size_t)t->model->data.batch * sizeof(*images));
        r = layers->begin(t->c, f->batches, 1, false, err);
    }
    for (int i = 0; i < t->model->n && r == 0; i++) {
        r = gather_layer(t, &t->model->layers[i], false, err);
        if (r == 0 && images)
            r = layers->forward(t->c, i, f->weights, NULL, &wrong, err);
    }
    return r == 0 && images ? layers->classes(t->c, ret_classes, err) : r;
}

static void fsdp_close(struct trainer *t) {
    struct fsdp *f = t->m;
    state_fini(&t->state);
    if (!f)
        return;
    free(f->weights);
    free(f->sums);
    free(f->own);
    free(f->shared);
    free(f);
}

const struct mode mode_fsdp = {
    .name = "fsdp",
    .summary = "each rank holds its part of everything and gathers one layer at a time",
    .layered = true,
    .open = fsdp_open,
    .step = fsdp_step,
    .gather = part_gather,
    .hash = part_hash,
    .classify = fsdp_classify,
    .close = fsdp_close,
};
