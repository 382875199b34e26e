/* The loop itself does what ddp does for it: it takes its part of the step's batch, computes it, and
 * asks for the sum of every layer's gradient, one after another. */
#include "scenarios/jobs/ranktrain/mode/mode.h"
#include "scenarios/jobs/ranktrain/mode/work.h"

/* The parts are contiguous; that of rank r begins where that of rank r - 1 ends. */
static int manual_open(struct trainer *t, struct err *err) {
    int n = (int)t->o->shards, world = t->o->world, rank = t->o->rank;
    int from = (n * rank + world - 1) / world, to = (n * (rank + 1) + world - 1) / world;
    t->n_shards = 0;
    for (int s = from; s < to; s++)
        t->shards[t->n_shards++] = s;
    return work_open(t, err);
}

static int manual_step(struct trainer *t, double *ret_loss, struct err *err) {
    const struct model *m = t->model;
    int r = work_compute(t, t->state.step + 1, NULL, err);
    for (int i = 0; i < m->n && r == 0; i++)
        if (m->layers[i].trained)
            r = trainer_sum(t, t->sums + m->layers[i].trained_at, m->layers[i].trained, err);
    if (r == 0) /* the running statistics, and the loss behind them */
        r = trainer_sum(t, t->sums + m->trained, m->values - m->trained + 1, err);
    if (r == 0)
        *ret_loss = work_update(t);
    return r;
}

const struct mode mode_manual = {
    .name = "manual",
    .summary = "the loop splits the batch and sums every layer's gradient itself",
    .open = manual_open,
    .step = manual_step,
    .close = work_close,
};
