/* Looks for workers of two rounds that live at one time. */
#include "harness/invariants/judge.h"

#include <string.h>

static void judge_settled(struct judge *j) {
    judge_risk(j, INVARIANT_one_round);
    for (int i = 0; i < j->n_last; i++)
        if (!j->last[i].said && !j->last[i].gone_first)
            invariant_broken(j, &invariant_one_round,
                             "round %lld is settled without a certificate of %s",
                             (long long)j->head.last_round, j->last[i].uid);
}

static void judge_acks(struct judge *j, const struct head_change *h) {
    for (int i = 0; i < j->n_form; i++) {
        struct store_key key = judge_key_of(KEY_ACK, h->key->inc, j->form[i].uid);
        key.round = j->head.last_round;
        if (!judge_key(j, &key, NULL))
            invariant_broken(j, &invariant_one_round, "round %lld runs without the ack of %s",
                             (long long)h->to->round, key.uid);
    }
}

static void on_head(struct judge *j, const struct head_change *h) {
    if (h->settles)
        judge_settled(j);
    if (h->to->phase == HEAD_RUN)
        judge_acks(j, h);
}

static void on_start(struct judge *j, int node, const struct round_spec *s) {
    for (int i = 0; i < j->n_nodes; i++) {
        const struct judged_group *g = judge_group(j, i);
        if (g->alive && (g->round != s->round || i == node || g->former))
            invariant_broken(j, &invariant_one_round,
                             "n%d starts round %lld while n%d has workers of round %lld", node,
                             (long long)s->round, i, (long long)g->round);
    }
    if (s->round < j->start.round)
        invariant_broken(j, &invariant_one_round, "n%d starts round %lld after round %lld", node,
                         (long long)s->round, (long long)j->start.round);
}

const struct invariant invariant_one_round = {
    .name = "one_round",
    .number = "I1",
    .summary = "workers of two rounds never live at once",
    .text = "When a worker starts, no worker of another round lives on any machine, and none of a "
            "later round has lived. In the store: a round runs only when all of its members have "
            "acked the last one, and each member of the last one has a certificate: an ack, a done "
            "or its death.",
    .check = "one_round",
    .on_head = on_head,
    .on_start = on_start,
};
