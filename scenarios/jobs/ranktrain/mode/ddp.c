/* Every rank holds the whole state, computes its shards and adds up the gradients with all others. */
#include "scenarios/jobs/ranktrain/mode/mode.h"
#include "scenarios/jobs/ranktrain/mode/work.h"

static int ddp_step(struct trainer *t, double *ret_loss, struct err *err) {
    int r = work_compute(t, t->state.step + 1, NULL, err);
    if (r == 0)
        r = trainer_sum(t, t->sums, t->model->values + 1, err);
    if (r == 0)
        *ret_loss = work_update(t);
    return r;
}

const struct mode mode_ddp = {
    .name = "ddp",
    .summary = "every rank holds everything, the gradients are summed",
    .open = work_open,
    .step = ddp_step,
    .close = work_close,
};
