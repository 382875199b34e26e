#include "scenarios/jobs/ranktrain/trainer.h"
#include "scenarios/jobs/ranktrain/mode/mode.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

bool trainer_ends_together(const struct trainer *t) {
    return t->mode->gather && !t->mode->serves;
}

void trainer_announce(struct trainer *t) {
    if (t->reduced) /* nothing is written, for a thread that sums may look at it, too */
        return;
    rankquake_first_collective(&t->q);
    t->reduced = true;
}

int trainer_exchange(struct trainer *t, struct collective_call *call, struct err *err) {
    trainer_announce(t);
    call->deadline_ns = deadline_in_ns(t->o->collective_ns);
    int r = t->collective->start(t->ring, call, err);
    while (r == 0)
        r = t->collective->poll(t->ring, -1, err);
    return r < 0 ? r : 0;
}

int trainer_sum(struct trainer *t, int64_t *data, size_t n, struct err *err) {
    struct collective_call call = {
        .op = COLLECTIVE_ALL_REDUCE, .data = data, .bytes = n * sizeof(*data)};
    return trainer_exchange(t, &call, err);
}

int trainer_hash(struct trainer *t, char ret[65], struct err *err) {
    if (t->mode->hash)
        return t->mode->hash(t, ret, err);
    state_hash(&t->state, ret);
    return 0;
}
