#include "harness/sim/invariants/judging.h"

#include <string.h>

static void judge_gone(struct sim *c, const char *uid) {
    for (int i = 0; i < c->n_nodes; i++) {
        const struct group_model *g = &c->nodes[i].group;
        if (g->alive && strcmp(g->uid, uid) == 0)
            invariant_broken(c, &invariant_contract,
                             "gone/%s is written while n%d has workers of it (round %lld)", uid, i,
                             (long long)g->round);
    }
}

static void judge_ack(struct sim *c, const struct key *key) {
    if (key->round != c->judge.head.last_round)
        return;
    for (int i = 0; i < c->n_nodes; i++) {
        const struct group_model *g = &c->nodes[i].group;
        bool lives = g->alive || g->reaped_ns > c->now_ns;
        if (lives && g->round <= key->round && strcmp(g->uid, key->uid) == 0)
            invariant_broken(c, &invariant_contract, "%s acks round %lld with a living worker",
                             key->uid, (long long)key->round);
    }
}

static void on_put(struct sim *c, const char *uid, const struct op *op) {
    (void)uid;
    if (op->key.kind == KEY_GONE)
        judge_gone(c, op->key.uid);
    else
        judge_ack(c, &op->key);
}

const struct invariant invariant_contract = {
    .name = "contract",
    .number = "CONTRACT",
    .summary = "a session that is certified dead, or has acked, has no worker",
    .text = "The moment a death certificate is written no worker of that session lives on any "
            "machine, whatever its agent, its guard and its clock were doing; and an agent that "
            "acks a round has no worker of it or of an earlier one. All other promises rest on it.",
    .kinds = 1u << KEY_GONE | 1u << KEY_ACK,
    .on_put = on_put,
};
