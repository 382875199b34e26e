/* Compares the outcome of each agent with what the workers did. */
#include "harness/invariants/judge.h"

#include <signal.h>

static void on_put(struct judge *j, const struct op *op) {
    struct judged_member *m = member_find(j->last, j->n_last, op->key.uid);
    if (m && op->key.round == j->head.last_round && !m->succeeded)
        invariant_broken(j, &invariant_outcome, "%s says done, but its workers did not all succeed",
                         op->key.uid);
}

static void judge_succeeded(struct judge *j) {
    if (j->head.phase != HEAD_RUN)
        invariant_broken(j, &invariant_outcome, "succeeded outside a round");
    for (int i = 0; i < j->n_last; i++)
        if (!j->last[i].succeeded)
            invariant_broken(j, &invariant_outcome,
                             "closed as succeeded, but the workers of %s did not succeed",
                             j->last[i].uid);
}

/* All or nothing: a member of the last round has no session, and had not succeeded. */
static void judge_gang(struct judge *j, const struct head_change *h) {
    bool missed = false;
    for (int i = 0; i < j->n_last; i++)
        missed |= !judge_has_session(j, h->key->inc, j->last[i].uid);
    if (!j->job.gang || !missed)
        invariant_broken(j, &invariant_outcome, "failed by the loss of a node, %s",
                         j->job.gang ? "and none is lost" : "which was to be replaced");
}

/* The coordinator's clock may run 1 % fast; what it has seen is a little older than the store. */
static void judge_too_few(struct judge *j) {
    if (!j->times || judge_is_spent(j))
        return; /* it was the rounds without cost of which there were too many */
    if (j->job.seated)
        return; /* two sessions may be of one node */
    int64_t few_ns = j->now_ns - j->times->enough.few_ns,
            enough_ns = j->now_ns - j->times->enough.since_ns;
    if (j->times->enough.now && enough_ns > j->job.timing.suspect_ns + 200 * JUDGE_MS)
        invariant_broken(j, &invariant_outcome,
                         "failed for too few nodes, though there have been %d for %lld ms",
                         j->job.min, (long long)(enough_ns / JUDGE_MS));
    else if (few_ns < j->job.join_timeout_ns / 100 * 98)
        invariant_broken(j, &invariant_outcome,
                         "failed for too few nodes, %lld ms after there were %d",
                         (long long)(few_ns / JUDGE_MS), j->job.min);
}

static void on_head(struct judge *j, const struct head_change *h) {
    if (h->to->phase != HEAD_CLOSED)
        return;
    judge_risk(j, INVARIANT_outcome);
    if (h->to->outcome == OUTCOME_SUCCEEDED)
        judge_succeeded(j);
    else if (!h->settles && h->to->failure.node[0])
        judge_gang(j, h);
    else if (!h->settles)
        judge_too_few(j);
    else if (h->to->restarts <= j->job.max_restarts)
        invariant_broken(j, &invariant_outcome, "failed with %d restarts of %d", h->to->restarts,
                         j->job.max_restarts);
}

static bool fits_outcome(int code, enum head_outcome o) {
    return (code == 0 && o == OUTCOME_SUCCEEDED) || (code == 1 && o == OUTCOME_FAILED);
}

/* Who ends by itself ends with the outcome; a leaver with its signal; and one whose workers cannot
 * be reaped with 1, whatever the others come to. Where two attempts meet, one is refused. */
static void on_exit(struct judge *j, int node, int code) {
    enum head_outcome o = j->outcome;
    bool fits =
        (code == 1 && judge_waits_for_workers(j, node)) ||
        (code == 69 && j->ops->may_give_up(j->world, node)) || fits_outcome(code, o) ||
        (code == 0 && j->ended[OUTCOME_SUCCEEDED]) || (code == 1 && j->ended[OUTCOME_FAILED]) ||
        (judge_node(j, node)->signaled && code == 128 + SIGTERM) || (code == 64 && j->others);
    if (!fits)
        invariant_broken(j, &invariant_outcome, "the agent of n%d ends with %d, the outcome is %d",
                         node, code, o);
}

/* With two jobs one after the other it may be of the first. */
static void on_failure(struct judge *j, int node, int64_t round) {
    if (!j->ended[OUTCOME_FAILED] && round != j->head.last_round)
        invariant_broken(j, &invariant_outcome,
                         "the agent of n%d names a failure of round %lld; the last was %lld", node,
                         (long long)round, (long long)j->head.last_round);
}

const struct invariant invariant_outcome = {
    .name = "outcome",
    .number = "I6",
    .summary = "one outcome, and it is what the workers did",
    .text = "A job has succeeded when every worker of its last round has, in that round; it has "
            "failed when the budget is spent, when a node is lost and on-node-loss is gang, or "
            "when there were fewer than min nodes for join_timeout. Every agent that ends by "
            "itself ends with that outcome, and names the round of the failure; one that was told "
            "to leave ends with its signal.",
    .check = "one_outcome",
    .kinds = 1u << KEY_DONE,
    .on_put = on_put,
    .on_head = on_head,
    .on_exit = on_exit,
    .on_failure = on_failure,
};
