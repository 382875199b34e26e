#include "harness/sim/invariants/judging.h"

/* The members of the round by their ranks; NULL when two have the same, or one is outside. */
static const struct last_member **by_rank(struct sim *c) {
    const struct judge *j = &c->judge;
    arena_clear(&c->arena);
    const struct last_member **order =
        arena_array(&c->arena, const struct last_member *, (size_t)j->n_form);
    for (int i = 0; i < j->n_form; i++) {
        int rank = j->form[i].rank;
        if (rank < 0 || rank >= j->n_form || order[rank])
            return NULL;
        order[rank] = &j->form[i];
    }
    return order;
}

static void on_head(struct sim *c, const struct head_change *h) {
    struct judge *j = &c->judge;
    const struct last_member **order = h->to->phase == HEAD_RUN ? by_rank(c) : NULL, *last = NULL;
    bool newcomer = false;
    if (h->to->phase == HEAD_RUN && !order)
        invariant_broken(c, &invariant_rank_order, "the group ranks are not 0 to %d",
                         j->n_form - 1);
    for (int i = 0; order && i < j->n_form; i++) {
        const struct last_member *m = member_find(j->last, j->n_last, order[i]->uid);
        newcomer |= !m;
        if (!m)
            continue;
        if ((last && last->rank > m->rank) || (newcomer && !c->schedule->seated))
            invariant_broken(c, &invariant_rank_order, "%s is ranked before the survivor %s",
                             order[i - 1]->uid, m->uid);
        last = m;
    }
}

const struct invariant invariant_rank_order = {
    .name = "rank_order",
    .number = "I3",
    .summary = "who was in the last round comes first, in the same order",
    .text = "Sessions that were in the last round are ranked before all others, and among "
            "themselves as they were: rank 0 has the state of the job. With fixed ranks a "
            "newcomer may take a place between them.",
    .check = "rank_order",
    .on_head = on_head,
};
