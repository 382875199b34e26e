#include "scenarios/jobs/ranktrain/save.h"
#include "scenarios/jobs/ranktrain/mode/mode.h"

/* Of the step alone, so that all ranks say the same. */
static bool is_due(const struct trainer *t) {
    return t->state.step == t->last_step || t->state.step % (uint64_t)t->o->checkpoint_every == 0;
}

/* Where the state is in parts rank 0 makes a whole of them, and every rank takes part. */
static int save_parts(struct trainer *t, struct err *err) {
    struct state whole = {0};
    if (trainer_leads(t))
        state_init(&whole, t->model, t->optimizer.kind);
    int r = t->mode->gather(t, &whole, err);
    if (r == 0 && trainer_leads(t))
        r = checkpoint_save(&t->place, &whole, &t->q, err);
    state_fini(&whole);
    return r;
}

int save_step(struct trainer *t, bool end, struct err *err) {
    bool parts = t->mode->gather != NULL;
    if (!t->o->checkpoint_dir || t->saved_step == t->state.step || (!is_due(t) && (!end || parts)))
        return 0;
    if (!parts && !trainer_leads(t))
        return 0;
    t->saved_step = t->state.step;
    return parts ? save_parts(t, err) : checkpoint_save(&t->place, &t->state, &t->q, err);
}
