#include "scenarios/jobs/ranktrain/mode/work.h"
#include "scenarios/jobs/ranktrain/fixed_point.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include <errno.h>
#include <stdlib.h>

int work_count_compute(struct ration *r, const struct compute *compute, void *c, struct err *err) {
    struct compute_memory m;
    compute->memory(c, &m);
    int e = ration_take(r, RATION_PARAMETERS, m.parameters, err);
    if (e == 0)
        e = ration_take(r, RATION_GRADIENTS, m.gradients, err);
    return e == 0 ? ration_take(r, RATION_ACTIVATIONS, m.activations, err) : e;
}

int work_open_state(struct trainer *t, struct state_range held, struct state_range held_moments,
                    struct err *err) {
    const struct optimizer_kind *k = t->optimizer.kind;
    size_t moments = (size_t)optimizer_moments(k) * state_range_length(held_moments);
    size_t weights = state_range_length(held);
    int r = ration_take(&t->ration, RATION_PARAMETERS, weights * sizeof(float), err);
    if (r == 0)
        r = ration_take(&t->ration, RATION_OPTIMIZER, moments * sizeof(float), err);
    if (r == 0)
        state_init_part(&t->state, t->model, k, held, held_moments);
    return r;
}

int work_open_part(struct trainer *t, struct state_range held, struct state_range held_moments,
                   struct err *err) {
    size_t values = t->model->values;
    int r = work_open_state(t, held, held_moments, err);
    if (r == 0)
        r = work_count_compute(&t->ration, t->compute, t->c, err);
    if (r < 0)
        return r;
    if (!t->compute->sum)
        t->gradient = ration_alloc(&t->ration, RATION_GRADIENTS, values, sizeof(float), err);
    if (t->compute->sum || t->gradient)
        t->sums = ration_alloc(&t->ration, RATION_GRADIENTS, values + 1, sizeof(int64_t), err);
    return t->sums ? 0 : -ENOMEM;
}

int work_open(struct trainer *t, struct err *err) {
    return work_open_part(t, (struct state_range){0, t->model->values},
                          (struct state_range){0, t->model->trained}, err);
}

void work_close(struct trainer *t) {
    free(t->gradient);
    free(t->sums);
    state_fini(&t->state);
}

int work_floor(struct trainer *t, int64_t begun_ns, struct err *err) {
    struct link_wait floor = {.deadline_ns = begun_ns + t->o->compute_ns,
                              .wake_fd = t->asked.told_fd};
    bool asked = t->o->compute_ns && link_ready(-1, 0, &floor) == -ECANCELED;
    return asked && !trainer_ends_together(t) ? -ECANCELED : 0;
}

int work_compute(struct trainer *t, uint64_t step, const struct work_watch *watch,
                 struct err *err) {
    int64_t begun_ns = deadline_now_ns();
    const uint32_t *samples = sampler_step(&t->sampler, step);
    const struct shards_work work = {.compute = t->compute,
                                     .c = t->c,
                                     .model = t->model,
                                     .data = &t->data.train,
                                     .scratch = t->gradient,
                                     .ready = watch ? watch->ready : NULL,
                                     .arg = watch ? watch->arg : NULL};
    int r = shards_sum(&work, t->state.weights, samples, t->shards, t->n_shards, t->sums,
                       rankquake_asked(&t->q, RANKQUAKE_ASK_SAMPLES) ? t->read : NULL, err);
    return r == 0 ? work_floor(t, begun_ns, err) : r;
}

void work_update_part(struct trainer *t, const int64_t *sums, float *weights, size_t values) {
    struct state *s = &t->state;
    const struct optimizer_update u = {.sums = sums,
                                       .trained = state_range_length(s->held_moments),
                                       .values = values,
                                       .samples = (unsigned)t->o->batch_size,
                                       .batches = (unsigned)t->o->shards,
                                       .step = s->step + 1};
    optimizer_step(&t->optimizer, &u, weights, s->moment);
    s->step++;
}

double work_update(struct trainer *t) {
    size_t values = t->model->values;
    work_update_part(t, t->sums, t->state.weights, values);
    return fixed_point_value(t->sums[values]) / (double)t->o->batch_size;
}
