/* Looks for live workers of a session that is certified dead or has acked. */
#include "harness/invariants/judge.h"

#include <string.h>

static void judge_gone(struct judge *j, const char *uid) {
    judge_risk(j, INVARIANT_contract);
    for (int i = 0; i < j->n_nodes; i++) {
        const struct judged_group *g = judge_group(j, i);
        if (g->alive && strcmp(g->uid, uid) == 0)
            invariant_broken(j, &invariant_contract,
                             "gone/%s is written while n%d has workers of it (round %lld)", uid, i,
                             (long long)g->round);
    }
}

static void judge_ack(struct judge *j, const struct store_key *key) {
    if (key->round != j->head.last_round)
        return;
    for (int i = 0; i < j->n_nodes; i++) {
        const struct judged_group *g = judge_group(j, i);
        bool lives = g->alive || g->reaped_ns > j->now_ns;
        if (lives && g->round <= key->round && strcmp(g->uid, key->uid) == 0)
            invariant_broken(j, &invariant_contract, "%s acks round %lld with a living worker",
                             key->uid, (long long)key->round);
    }
}

static void on_put(struct judge *j, const struct op *op) {
    if (op->key.kind == KEY_GONE)
        judge_gone(j, op->key.uid);
    else
        judge_ack(j, &op->key);
}

/* Who has a certificate can start none. */
static void on_start(struct judge *j, int node, const struct round_spec *s) {
    const char *uid = j->ops->session(j->world, node);
    struct store_key gone = judge_key_of(KEY_GONE, j->inc, uid);
    if (judge_key(j, &gone, NULL))
        invariant_broken(j, &invariant_contract,
                         "n%d starts round %lld as %s, which has a certificate", node,
                         (long long)s->round, uid);
}

const struct invariant invariant_contract = {
    .name = "contract",
    .number = "CONTRACT",
    .summary = "a session that is certified dead, or has acked, has no worker",
    .text = "The moment a death certificate is written no worker of that session lives on any "
            "machine, whatever its agent, its guard and its clock were doing; and an agent that "
            "acks a round has no worker of it or of an earlier one; nor does a session that has a "
            "certificate start any. All other promises rest on it.",
    .kinds = 1u << KEY_GONE | 1u << KEY_ACK,
    .on_put = on_put,
    .on_start = on_start,
};
