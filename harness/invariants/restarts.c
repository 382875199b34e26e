/* Counts restarts by how each round ended. */
#include "harness/invariants/judge.h"

#include <stdlib.h>
#include <string.h>

/* The node whose workers of that round, the last it had, were of this session. */
static const struct judged_group *group_of(const struct judge *j, const char *uid, int64_t round) {
    for (int i = 0; i < j->n_nodes; i++)
        if (judge_group(j, i)->round == round && strcmp(judge_group(j, i)->uid, uid) == 0)
            return judge_group(j, i);
    return NULL;
}

/* What was fenced counts as lost: who hides it makes the others pay. Who watches is told as well,
 * who would otherwise look for another reason why the round was free. */
static void on_put(struct judge *j, const struct op *op) {
    const struct judged_group *g = group_of(j, op->key.uid, op->key.round);
    bool says = op->value->ack.why == ACK_FENCED;
    if (g && j->times && op->value->ack.why == ACK_FAILED && !g->unasked)
        invariant_broken(j, &invariant_restarts,
                         "%s acks round %lld as failed, and none of its workers has ended unasked",
                         op->key.uid, (long long)op->key.round);
    if (g && g->by_guard && !says)
        invariant_broken(j, &invariant_restarts,
                         "%s was fenced in round %lld, and its ack does not say so", op->key.uid,
                         (long long)op->key.round);
    if (g && j->job.kept && says && !g->told_fenced)
        invariant_broken(j, &invariant_restarts,
                         "%s acks round %lld as fenced, and has not told so who watches",
                         op->key.uid, (long long)op->key.round);
}

static void judge_cause(struct judge *j, const struct head_value *to) {
    const struct judged_group *g = group_of(j, to->failure.uid, to->round);
    bool counts = g && (j->times ? g->unasked : g->failed);
    judge_risk(j, INVARIANT_restarts);
    if (g ? !counts : j->job.kept)
        invariant_broken(
            j, &invariant_restarts,
            "round %lld ends as failed by %s, none of whose workers has failed unasked",
            (long long)to->round, to->failure.uid);
}

/* An agent ends a round at no cost when it was fenced, who leads when a node is lost. */
static void judge_free_end(struct judge *j, const struct head_change *h) {
    const struct judged_group *g = group_of(j, j->writer, h->to->round);
    if (!judge_is_lost(j, h->key->inc) && g && !g->told_fenced)
        invariant_broken(j, &invariant_restarts,
                         "%s ends round %lld at no cost, was not fenced, and nobody is lost",
                         j->writer, (long long)h->to->round);
}

/* Who watches is told of a fence only by who was behind one: what else ends workers is charged. */
static void on_claim(struct judge *j, int node, const char *what, int64_t round) {
    const struct judged_group *g = judge_group(j, node);
    if (!j->times || strcmp(what, CLAIM_FENCED) != 0 || g->round != round || !g->unasked)
        return;
    if (!g->timed_out && !g->by_guard && !j->ops->fence_passed(j->world, node))
        invariant_broken(j, &invariant_restarts,
                         "n%d says that round %lld was fenced, and its deadline has not passed",
                         node, (long long)round);
}

/* The first round of a store that was wiped: who had workers in the last one of before, and has not
 * ended since, knows how many restarts there were then. */
static void judge_memory(struct judge *j, const struct head_change *h) {
    union value cur;
    if (!judge_key(j, &(struct store_key){.kind = KEY_CUR}, &cur) || cur.cur.former[0])
        return; /* a new attempt begins anew */
    for (int i = 0; i < j->n_form; i++) {
        struct store_key key = judge_key_of(KEY_MEMBER, h->key->inc, j->form[i].uid);
        union value v;
        int node = judge_key(j, &key, &v) ? atoi(v.member.node + 1) : -1;
        if (node < 0 || judge_node(j, node)->wiped_life != judge_node(j, node)->life)
            continue;
        if (h->to->restarts < j->wiped.least || h->to->round <= j->wiped.round)
            invariant_broken(j, &invariant_restarts,
                             "n%d knows of %d restarts and round %lld of a store of before; round "
                             "%lld runs with %d",
                             node, j->wiped.least, (long long)j->wiped.round,
                             (long long)h->to->round, h->to->restarts);
    }
}

static void on_head(struct judge *j, const struct head_change *h) {
    const struct head_value *to = h->to;
    if (to->phase == HEAD_END && to->cause == CAUSE_FAILURE)
        judge_cause(j, to);
    if (j->times && to->phase == HEAD_END && to->cause == CAUSE_MEMBERSHIP)
        judge_free_end(j, h);
    if (h->settles && to->restarts != h->restarts)
        invariant_broken(j, &invariant_restarts, "%d restarts are written, %d rounds have failed",
                         to->restarts, h->restarts);
    if (j->wiped.happened && !j->others && to->phase == HEAD_RUN && !j->n_last)
        judge_memory(j, h);
    if (to->restarts < j->head.restarts)
        invariant_broken(j, &invariant_restarts, "restarts go back from %d to %d", j->head.restarts,
                         to->restarts);
    bool is_free = to->phase == HEAD_RUN && j->n_last && h->restarts == j->restarts;
    if (is_free && judge_is_spent(j))
        invariant_broken(j, &invariant_restarts, "round %lld is the one after %d without cost",
                         (long long)to->round, j->free_rounds);
    if (to->phase == HEAD_RUN && to->restarts > j->job.max_restarts)
        invariant_broken(j, &invariant_restarts, "round %lld runs after %d restarts of %d",
                         (long long)to->round, to->restarts, j->job.max_restarts);
}

const struct invariant invariant_restarts = {
    .name = "restarts",
    .number = "I4",
    .summary = "a failed round costs one restart, one that lost a node none",
    .text =
        "The restarts that head tells are the rounds that ended by a failure and lost no "
        "member, as the judge counts them; they never go back, and no round runs beyond the "
        "budget; nor do more rounds without cost than were allowed, if any number was. A round "
        "ends as failed only when a worker of it, or a guard, has ended and nobody had asked for "
        "that; at no cost only when a node is lost or fenced; and who was fenced says so, in its "
        "ack and to who watches, and nobody else.",
    .check = "restart_count",
    .kinds = 1u << KEY_ACK,
    .on_put = on_put,
    .on_head = on_head,
    .on_claim = on_claim,
};
