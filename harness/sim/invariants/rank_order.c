#include "harness/sim/invariants/judging.h"

static void on_head(struct sim *c, const struct head_change *h) {
    struct judge *j = &c->judge;
    if (h->to->phase != HEAD_RUN)
        return;
    for (int i = 0; i < j->n_form; i++) {
        struct last_member *a = member_find(j->last, j->n_last, j->form[i].uid);
        for (int k = 0; k < j->n_form; k++) {
            struct last_member *b = member_find(j->last, j->n_last, j->form[k].uid);
            bool before = j->form[i].rank < j->form[k].rank;
            bool late = a && b ? a->rank > b->rank : !c->schedule->seated;
            if (k != i && b && before && late)
                invariant_broken(c, &invariant_rank_order, "%s is ranked before the survivor %s",
                                 j->form[i].uid, j->form[k].uid);
        }
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
