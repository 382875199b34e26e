#include "harness/sim/invariants/judging.h"

static void on_start(struct sim *c, int node, const struct round_spec *s) {
    (void)node;
    for (int i = s->rank_base; i < s->rank_base + s->local_world; i++)
        if (i < 0 || i >= s->world || c->judge.ranks[i])
            invariant_broken(c, &invariant_ranks,
                             "rank %d of round %lld is given twice or is outside of %d", i,
                             (long long)s->round, s->world);
}

const struct invariant invariant_ranks = {
    .name = "ranks",
    .number = "I2",
    .summary = "no rank of a round is given twice",
    .text = "The ranks that the nodes of a round start are all different and below its world "
            "size.",
    .check = "ranks",
    .on_start = on_start,
};
