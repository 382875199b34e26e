#include "harness/sim/invariants/judging.h"

#include <string.h>

/* The node whose workers of that round, the last it had, were of this session. */
static const struct group_model *group_of(const struct sim *c, const char *uid, int64_t round) {
    for (int i = 0; i < c->n_nodes; i++)
        if (c->nodes[i].group.round == round && strcmp(c->nodes[i].group.uid, uid) == 0)
            return &c->nodes[i].group;
    return NULL;
}

/* What was fenced counts as lost: who hides it makes the others pay. */
static void on_put(struct sim *c, const char *uid, const struct op *op) {
    const struct group_model *g = group_of(c, op->key.uid, op->key.round);
    (void)uid;
    if (g && g->by_guard && op->value->ack.why != ACK_FENCED)
        invariant_broken(c, &invariant_restarts,
                         "%s was fenced in round %lld, and its ack does not say so", op->key.uid,
                         (long long)op->key.round);
}

static void judge_failure(struct sim *c, const struct head_value *to) {
    const struct group_model *g = group_of(c, to->failure.uid, to->round);
    if (!g || !g->failed)
        invariant_broken(c, &invariant_restarts,
                         "round %lld ends as failed by %s, none of whose workers has failed",
                         (long long)to->round, to->failure.uid);
}

static void on_head(struct sim *c, const struct head_change *h) {
    const struct head_value *to = h->to;
    if (to->phase == HEAD_END && to->cause == CAUSE_FAILURE)
        judge_failure(c, to);
    if (h->settles && to->restarts != h->restarts)
        invariant_broken(c, &invariant_restarts, "%d restarts are written, %d rounds have failed",
                         to->restarts, h->restarts);
    if (to->restarts < c->judge.head.restarts)
        invariant_broken(c, &invariant_restarts, "restarts go back from %d to %d",
                         c->judge.head.restarts, to->restarts);
    if (to->phase == HEAD_RUN && to->restarts > c->max_restarts)
        invariant_broken(c, &invariant_restarts, "round %lld runs after %d restarts of %d",
                         (long long)to->round, to->restarts, c->max_restarts);
}

const struct invariant invariant_restarts = {
    .name = "restarts",
    .number = "I4",
    .summary = "a failed round costs one restart, one that lost a node none",
    .text = "The restarts that head tells are the rounds that ended by a failure and lost no "
            "member, as the judge counts them; they never go back, and no round runs beyond the "
            "budget. A round ends as failed only when a worker of it has failed, and who was "
            "fenced says so.",
    .check = "restart_count",
    .kinds = 1u << KEY_ACK,
    .on_put = on_put,
    .on_head = on_head,
};
