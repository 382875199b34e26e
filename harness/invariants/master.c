/* Compares the master of each round with the node of its rank 0. */
#include "harness/invariants/judge.h"

#include <stdio.h>
#include <string.h>

/* Every agent reaches others under its node's name here. */
static void on_start(struct judge *j, int node, const struct round_spec *s) {
    char name[16];
    judge_risk(j, INVARIANT_master);
    snprintf(name, sizeof(name), "n%d", node);
    if (!*s->master_addr || s->master_port <= 0)
        invariant_broken(j, &invariant_master, "n%d starts round %lld without a master", node,
                         (long long)s->round);
    else if (s->rank_base == 0 && strcmp(s->master_addr, name) != 0)
        invariant_broken(j, &invariant_master, "rank 0 of round %lld is on n%d, the master is %s",
                         (long long)s->round, node, s->master_addr);
}

/* Address and port are those that the node of rank 0 has told last. */
static void on_head(struct judge *j, const struct head_change *h) {
    union value v;
    for (int i = 0; j->times && h->to->phase == HEAD_RUN && i < j->n_form; i++) {
        struct store_key key = judge_key_of(KEY_ACK, h->key->inc, j->form[i].uid);
        key.round = j->head.last_round;
        if (j->form[i].rank == 0 && judge_key(j, &key, &v) &&
            (v.ack.port != h->to->master_port || strcmp(v.ack.addr, h->to->master_addr) != 0))
            invariant_broken(j, &invariant_master,
                             "the master of round %lld is %s:%d, %s of rank 0 has told %s:%d",
                             (long long)h->to->round, h->to->master_addr, h->to->master_port,
                             key.uid, v.ack.addr, v.ack.port);
    }
}

const struct invariant invariant_master = {
    .name = "master",
    .number = "I2",
    .summary = "the master of a round is the node of its rank 0",
    .text = "Workers are started with the address and a port of a master, and the address is that "
            "of the node which starts rank 0; both are those of its ack.",
    .check = "master",
    .on_head = on_head,
    .on_start = on_start,
};
