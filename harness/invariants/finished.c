/* Looks for rounds that are formed after a node is done. */
#include "harness/invariants/judge.h"

static bool is_lost(struct judge *j, const struct judged_member *m) {
    return m->gone_first || (!m->said && !judge_has_session(j, j->inc, m->uid));
}

static void on_head(struct judge *j, const struct head_change *h) {
    int done = 0;
    if (h->to->phase != HEAD_FORM || j->head.phase != HEAD_RUN)
        return;
    for (int i = 0; i < j->n_last; i++) {
        if (is_lost(j, &j->last[i]))
            return;
        done += j->last[i].said;
    }
    judge_risk(j, INVARIANT_finished);
    if (done)
        invariant_broken(j, &invariant_finished,
                         "round %lld is formed again though %d of its %d nodes are done and none "
                         "of the others is lost",
                         (long long)j->head.round, done, j->n_last);
}

const struct invariant invariant_finished = {
    .name = "finished",
    .number = "I6",
    .summary = "once a node is done, the round is not formed again for a newcomer",
    .text = "From the moment a node of a round has said that its workers are done, that round is "
            "formed again only because a node that was not done is lost: neither for who comes "
            "late nor for the loss of one that was done.",
    .on_head = on_head,
};
