/* Looks for ranks that were given twice. */
#include "harness/invariants/judge.h"

static void on_head(struct judge *j, const struct head_change *h) {
    for (int i = 0; h->to->phase == HEAD_FORM && i < j->n_form; i++) {
        int rank = j->form[i].rank;
        if (rank < 0 || rank >= j->n_form)
            invariant_broken(j, &invariant_ranks,
                             "group rank %d is in the plan of round %lld, which has %d nodes", rank,
                             (long long)h->to->round, j->n_form);
        for (int k = 0; k < i; k++)
            if (j->form[k].rank == rank)
                invariant_broken(j, &invariant_ranks, "group rank %d of round %lld is given twice",
                                 rank, (long long)h->to->round);
    }
}

static void on_start(struct judge *j, int node, const struct round_spec *s) {
    judge_risk(j, INVARIANT_ranks);
    for (int i = s->rank_base; i < s->rank_base + s->local_world; i++)
        if (i < 0 || i >= s->world || j->ranks[i])
            invariant_broken(j, &invariant_ranks,
                             "rank %d of round %lld is given twice or is outside of %d", i,
                             (long long)s->round, s->world);
}

const struct invariant invariant_ranks = {
    .name = "ranks",
    .number = "I2",
    .summary = "no rank of a round is given twice",
    .text = "The ranks that the nodes of a round start are all different and below its world "
            "size; the nodes of a plan have the group ranks from 0 on, without a gap.",
    .check = "ranks",
    .on_head = on_head,
    .on_start = on_start,
};
