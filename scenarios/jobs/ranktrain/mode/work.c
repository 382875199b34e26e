#include "scenarios/jobs/ranktrain/mode/work.h"
#include "scenarios/jobs/ranktrain/fixed_point.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>

int work_open(struct trainer *t, struct err *err) {
    state_init(&t->state, t->model, t->optimizer.kind);
    t->gradient = mem_array(float, t->model->values);
    t->sums = mem_array(int64_t, t->model->values + 1);
    return 0;
}

void work_close(struct trainer *t) {
    free(t->gradient);
    free(t->sums);
    state_fini(&t->state);
}

int work_compute(struct trainer *t, uint64_t step, struct err *err) {
    struct link_wait floor = {.deadline_ns = deadline_in_ns(t->o->compute_ns),
                              .wake_fd = t->wake_fd};
    const uint32_t *samples = sampler_step(&t->sampler, step);
    const struct shards_work work = {.compute = t->compute,
                                     .c = t->c,
                                     .model = t->model,
                                     .data = &t->data.train,
                                     .scratch = t->gradient};
    int r = shards_sum(&work, t->state.weights, samples, t->shards, t->n_shards, t->sums,
                       rankquake_asked(&t->q, RANKQUAKE_ASK_SAMPLES) ? t->read : NULL, err);
    if (r == 0 && t->o->compute_ns && link_ready(-1, 0, &floor) == -ECANCELED)
        r = -ECANCELED;
    return r;
}

double work_update(struct trainer *t) {
    struct state *s = &t->state;
    const struct optimizer_update u = {.sums = t->sums,
                                       .trained = t->model->trained,
                                       .values = t->model->values,
                                       .samples = (unsigned)t->o->batch_size,
                                       .batches = (unsigned)t->o->shards,
                                       .step = ++s->step};
    optimizer_step(&t->optimizer, &u, s->weights, s->moment);
    return fixed_point_value(t->sums[t->model->values]) / (double)t->o->batch_size;
}
