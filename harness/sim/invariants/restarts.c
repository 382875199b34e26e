#include "harness/sim/invariants/judging.h"

#include <stdlib.h>
#include <string.h>

/* The node whose workers of that round, the last it had, were of this session. */
static const struct group_model *group_of(const struct sim *c, const char *uid, int64_t round) {
    for (int i = 0; i < c->n_nodes; i++)
        if (c->nodes[i].group.round == round && strcmp(c->nodes[i].group.uid, uid) == 0)
            return &c->nodes[i].group;
    return NULL;
}

/* What was fenced counts as lost: who hides it makes the others pay. Who watches is told as well,
 * who would otherwise look for another reason why the round was free. */
static void on_put(struct sim *c, const char *uid, const struct op *op) {
    const struct group_model *g = group_of(c, op->key.uid, op->key.round);
    bool says = op->value->ack.why == ACK_FENCED;
    (void)uid;
    if (g && g->by_guard && !says)
        invariant_broken(c, &invariant_restarts,
                         "%s was fenced in round %lld, and its ack does not say so", op->key.uid,
                         (long long)op->key.round);
    if (g && says && !g->told_fenced)
        invariant_broken(c, &invariant_restarts,
                         "%s acks round %lld as fenced, and has not told so who watches",
                         op->key.uid, (long long)op->key.round);
}

static void judge_failure(struct sim *c, const struct head_value *to) {
    const struct group_model *g = group_of(c, to->failure.uid, to->round);
    if (!g || !g->failed)
        invariant_broken(c, &invariant_restarts,
                         "round %lld ends as failed by %s, none of whose workers has failed",
                         (long long)to->round, to->failure.uid);
}

/* The first round of a store that was wiped: who had workers in the last one of before, and has not
 * ended since, knows how many restarts there were then. */
static void judge_memory(struct sim *c, const struct head_change *h) {
    const struct judge *j = &c->judge;
    union value cur;
    if (!judge_key(c, (struct key){.kind = KEY_CUR}, &cur) || cur.cur.former[0])
        return; /* a new attempt begins anew */
    for (int i = 0; i < j->n_form; i++) {
        struct key key = {.kind = KEY_MEMBER};
        union value v;
        memcpy(key.inc, h->key->inc, sizeof(key.inc));
        memcpy(key.uid, j->form[i].uid, UID_SIZE);
        int node = judge_key(c, key, &v) ? atoi(v.member.node + 1) : -1;
        if (node < 0 || c->nodes[node].wiped_life != c->nodes[node].life)
            continue;
        if (h->to->restarts < c->wiped.least || h->to->round <= c->wiped.round)
            invariant_broken(c, &invariant_restarts,
                             "n%d knows of %d restarts and round %lld of a store of before; round "
                             "%lld runs with %d",
                             node, c->wiped.least, (long long)c->wiped.round,
                             (long long)h->to->round, h->to->restarts);
    }
}

static void on_head(struct sim *c, const struct head_change *h) {
    const struct head_value *to = h->to;
    if (to->phase == HEAD_END && to->cause == CAUSE_FAILURE)
        judge_failure(c, to);
    if (h->settles && to->restarts != h->restarts)
        invariant_broken(c, &invariant_restarts, "%d restarts are written, %d rounds have failed",
                         to->restarts, h->restarts);
    if (c->wiped.happened && !c->others && to->phase == HEAD_RUN && !c->judge.n_last)
        judge_memory(c, h);
    if (to->restarts < c->judge.head.restarts)
        invariant_broken(c, &invariant_restarts, "restarts go back from %d to %d",
                         c->judge.head.restarts, to->restarts);
    bool is_free = to->phase == HEAD_RUN && c->judge.n_last && h->restarts == c->judge.restarts;
    if (c->max_free_rounds && is_free && c->judge.free_rounds >= c->max_free_rounds)
        invariant_broken(c, &invariant_restarts, "round %lld is the one after %d without cost",
                         (long long)to->round, c->judge.free_rounds);
    if (to->phase == HEAD_RUN && to->restarts > c->max_restarts)
        invariant_broken(c, &invariant_restarts, "round %lld runs after %d restarts of %d",
                         (long long)to->round, to->restarts, c->max_restarts);
}

const struct invariant invariant_restarts = {
    .name = "restarts",
    .number = "I4",
    .summary = "a failed round costs one restart, one that lost a node none",
    .text =
        "The restarts that head tells are the rounds that ended by a failure and lost no "
        "member, as the judge counts them; they never go back, and no round runs beyond the "
        "budget; nor do more rounds without cost than were allowed, if any number was. A round "
        "ends as failed only when a worker of it has failed, and who was fenced says so, in its "
        "ack and to who watches.",
    .check = "restart_count",
    .kinds = 1u << KEY_ACK,
    .on_put = on_put,
    .on_head = on_head,
};
