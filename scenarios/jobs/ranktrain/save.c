#include "scenarios/jobs/ranktrain/save.h"
#include "scenarios/jobs/ranktrain/mode/mode.h"

static bool is_time(const struct trainer *t, bool end) {
    return end || t->state.step % (uint64_t)t->o->checkpoint_every == 0;
}

int save_step(struct trainer *t, bool end, struct err *err) {
    if (!trainer_leads(t) || !t->o->checkpoint_dir || !is_time(t, end) ||
        t->saved_step == t->state.step)
        return 0;
    t->saved_step = t->state.step;
    return checkpoint_save(&t->place, &t->state, &t->q, err);
}
