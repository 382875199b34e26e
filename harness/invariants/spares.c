/* Looks for spares that are taken while nobody is missing. */
#include "harness/invariants/judge.h"

static void on_head(struct judge *j, const struct head_change *h) {
    int least = j->n_last > j->job.min ? j->n_last : j->job.min;
    for (int i = 0; h->to->phase == HEAD_RUN && i < j->n_form; i++) {
        if (!judge_is_spare(j, h, j->form[i].uid))
            continue;
        judge_risk(j, INVARIANT_spares);
        if (j->n_form > least)
            invariant_broken(j, &invariant_spares,
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
