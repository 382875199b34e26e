/* Compares the order of each round with the round before. */
#include "base/mem.h"
#include "harness/invariants/judge.h"

#include <stdlib.h>

/* The members of the round by their ranks, to be freed; NULL when two have the same, or one is
 * outside. */
static const struct judged_member **by_rank(struct judge *j) {
    const struct judged_member **order =
        mem_array(const struct judged_member *, (size_t)j->n_form + 1);
    for (int i = 0; i < j->n_form; i++) {
        int rank = j->form[i].rank;
        if (rank < 0 || rank >= j->n_form || order[rank]) {
            free(order);
            return NULL;
        }
        order[rank] = &j->form[i];
    }
    return order;
}

static void on_head(struct judge *j, const struct head_change *h) {
    const struct judged_member **order = h->to->phase == HEAD_RUN ? by_rank(j) : NULL, *last = NULL;
    bool newcomer = false;
    if (h->to->phase == HEAD_RUN && !order)
        invariant_broken(j, &invariant_rank_order, "the group ranks are not 0 to %d",
                         j->n_form - 1);
    for (int i = 0; order && i < j->n_form; i++) {
        const struct judged_member *m = member_find(j->last, j->n_last, order[i]->uid);
        newcomer |= !m;
        if (!m)
            continue;
        judge_risk(j, INVARIANT_rank_order);
        if ((last && last->rank > m->rank) || (newcomer && !j->job.seated))
            invariant_broken(j, &invariant_rank_order, "%s is ranked before the survivor %s",
                             order[i - 1]->uid, m->uid);
        last = m;
    }
    free(order);
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
