/* Compares what the agents of a round were told. */
#include "harness/invariants/judge.h"

#include <stdlib.h>
#include <string.h>

static void on_head(struct judge *j, const struct head_change *h) {
    if (h->to->phase == HEAD_FORM && j->n_form != h->to->n)
        invariant_broken(j, &invariant_agreement, "head names a plan of %d, which has %d entries",
                         h->to->n, j->n_form);
}

static void on_start(struct judge *j, int node, const struct round_spec *s) {
    const struct judged_start *f = &j->start;
    judge_risk(j, INVARIANT_agreement);
    bool own = j->job.restart_mode == RESTART_COUNT_NODE;
    struct judged_node *n = judge_node(j, node);
    /* The store, or another attempt, has removed what a node had still to hear. */
    bool forgotten = (j->wiped.happened || j->others) && s->restart_count < n->restarts;
    if (own && !forgotten && abs(s->restart_count - n->restarts) > n->unsure)
        invariant_broken(j, &invariant_agreement,
                         "n%d is told of %d restarts, its own workers have caused %d", node,
                         s->restart_count, n->restarts);
    if (own && n->unsure) {
        n->restarts = s->restart_count;
        n->unsure = 0;
    }
    if (f->world != s->world || f->group_world != s->group_world ||
        f->master_port != s->master_port || (!own && f->restart_count != s->restart_count) ||
        strcmp(f->master_addr, s->master_addr) != 0 || strcmp(f->token, s->token) != 0)
        invariant_broken(j, &invariant_agreement,
                         "n%d is told something else about round %lld than the first one", node,
                         (long long)s->round);
}

const struct invariant invariant_agreement = {
    .name = "agreement",
    .number = "I2",
    .summary = "all nodes of a round are told the same about it",
    .text = "World size, number of nodes, master address and port, restart count and the round's "
            "token are those that the first node of the round was told; the plan that head names "
            "has as many entries as head says.",
    .check = "agreement",
    .on_head = on_head,
    .on_start = on_start,
};
