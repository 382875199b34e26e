#include "harness/sim/invariants/judging.h"

#include <string.h>

static void judge_settled(struct sim *c) {
    const struct judge *j = &c->judge;
    for (int i = 0; i < j->n_last; i++)
        if (!j->last[i].said && !j->last[i].gone_first)
            invariant_broken(c, &invariant_one_round,
                             "round %lld is settled without a certificate of %s",
                             (long long)j->head.last_round, j->last[i].uid);
}

static void judge_acks(struct sim *c, const struct head_change *h) {
    const struct judge *j = &c->judge;
    for (int i = 0; i < j->n_form; i++) {
        struct key key = {.kind = KEY_ACK, .round = j->head.last_round};
        memcpy(key.inc, h->key->inc, sizeof(key.inc));
        memcpy(key.uid, j->form[i].uid, UID_SIZE);
        if (!judge_key(c, key, NULL))
            invariant_broken(c, &invariant_one_round, "round %lld runs without the ack of %s",
                             (long long)h->to->round, key.uid);
    }
}

static void on_head(struct sim *c, const struct head_change *h) {
    if (h->settles)
        judge_settled(c);
    if (h->to->phase == HEAD_RUN)
        judge_acks(c, h);
}

static void on_start(struct sim *c, int node, const struct round_spec *s) {
    for (int i = 0; i < c->n_nodes; i++) {
        const struct group_model *g = &c->nodes[i].group;
        if (g->alive && (g->round != s->round || i == node || g->former))
            invariant_broken(c, &invariant_one_round,
                             "n%d starts round %lld while n%d has workers of round %lld", node,
                             (long long)s->round, i, (long long)g->round);
    }
    if (s->round < c->judge.facts.round)
        invariant_broken(c, &invariant_one_round, "n%d starts round %lld after round %lld", node,
                         (long long)s->round, (long long)c->judge.facts.round);
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
