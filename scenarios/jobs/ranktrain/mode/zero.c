/* Every rank holds all weights and updates a part of them, and only of that part it holds what the
 * optimizer keeps (ZeRO's first stage, Rajbhandari et al. 2020): the sums of the gradients are
 * scattered, the new weights gathered. */
#include "scenarios/jobs/ranktrain/fixed_point.h"
#include "scenarios/jobs/ranktrain/mode/mode.h"
#include "scenarios/jobs/ranktrain/mode/part.h"
#include "scenarios/jobs/ranktrain/mode/work.h"

static int zero_open(struct trainer *t, struct err *err) {
    return work_open_part(t, (struct state_range){0, t->model->values},
                          part_of_moments(t, t->o->rank), err);
}

static int zero_step(struct trainer *t, double *ret_loss, struct err *err) {
    size_t bounds[BOOTSTRAP_MEMBERS + 1], values = t->model->values;
    struct state_range all = {0, values}, own = part_of_weights(t, t->o->rank);
    struct collective_call scatter = {.op = COLLECTIVE_REDUCE_SCATTER,
                                      .data = t->sums,
                                      .bytes = values * sizeof(*t->sums),
                                      .bounds = bounds};
    struct collective_call gather = {.op = COLLECTIVE_ALL_GATHER,
                                     .data = t->state.weights,
                                     .bytes = values * sizeof(*t->state.weights),
                                     .bounds = bounds};
    int64_t loss_asked[2];
    int r = work_compute(t, t->state.step + 1, NULL, err);
    part_bounds(t, all, sizeof(*t->sums), bounds);
    if (r == 0)
        r = trainer_exchange(t, &scatter, err);
    loss_asked[0] = t->sums[values];
    loss_asked[1] = asked_is(&t->asked);
    if (r == 0)
        r = trainer_sum(t, loss_asked, 2, err);
    if (r < 0)
        return r;
    t->leaves = loss_asked[1] > 0;
    work_update_part(t, t->sums + own.lo, t->state.weights + own.lo, state_range_length(own));
    *ret_loss = fixed_point_value(loss_asked[0]) / (double)t->o->batch_size;
    part_bounds(t, all, sizeof(*t->state.weights), bounds);
    r = trainer_exchange(t, &gather, err);
    if (r < 0) /* what is here is of no step */
        t->state.step--;
    return r;
}

const struct mode mode_zero = {
    .name = "zero",
    .summary = "as ddp, and each rank keeps the optimizer's state of its part alone",
    .open = zero_open,
    .step = zero_step,
    .gather = part_gather,
    .close = work_close,
};
