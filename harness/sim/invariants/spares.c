#include "harness/sim/invariants/judging.h"

#include <string.h>

static bool is_spare(struct sim *c, const struct key *like, const char *uid) {
    union value v;
    struct key key = {.kind = KEY_MEMBER};
    memcpy(key.inc, like->inc, sizeof(key.inc));
    memcpy(key.uid, uid, UID_SIZE);
    return judge_key(c, key, &v) && v.member.want == WANT_STANDBY &&
           !member_find(c->judge.last, c->judge.n_last, uid);
}

static void on_head(struct sim *c, const struct head_change *h) {
    const struct judge *j = &c->judge;
    int least = j->n_last > c->min ? j->n_last : c->min;
    for (int i = 0; h->to->phase == HEAD_RUN && i < j->n_form; i++) {
        if (!is_spare(c, h->key, j->form[i].uid))
            continue;
        sim_mark(c, SIM_MARK_STANDBY_TAKEN);
        if (j->n_form > least)
            invariant_broken(c, &invariant_spares,
                             "the spare %s is taken into a round of %d: %d are enough",
                             j->form[i].uid, j->n_form, least);
    }
}

const struct invariant invariant_spares = {
    .name = "spares",
    .number = "I3",
    .summary = "a spare is taken only where somebody is missing",
    .text = "An agent that waits as a spare is taken into a round that would have fewer than min "
            "nodes without it, or fewer than the round before; never to make a job larger.",
    .on_head = on_head,
};
