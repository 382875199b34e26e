#include "harness/sim/invariants/judging.h"

#include <signal.h>

static void on_put(struct sim *c, const char *uid, const struct op *op) {
    struct last_member *m = member_find(c->judge.last, c->judge.n_last, op->key.uid);
    (void)uid;
    if (m && op->key.round == c->judge.head.last_round && !m->succeeded)
        invariant_broken(c, &invariant_outcome, "%s says done, but its workers did not all succeed",
                         op->key.uid);
}

static void judge_succeeded(struct sim *c) {
    const struct judge *j = &c->judge;
    if (j->head.phase != HEAD_RUN)
        invariant_broken(c, &invariant_outcome, "succeeded outside a round");
    for (int i = 0; i < j->n_last; i++)
        if (!j->last[i].succeeded)
            invariant_broken(c, &invariant_outcome,
                             "closed as succeeded, but the workers of %s did not succeed",
                             j->last[i].uid);
}

/* All or nothing: a member of the last round has no session, and had not succeeded. */
static void judge_gang(struct sim *c, const struct head_change *h) {
    const struct judge *j = &c->judge;
    bool missed = false;
    for (int i = 0; i < j->n_last; i++)
        missed |= !sim_judge_has_session(c, h->key, j->last[i].uid);
    if (!c->schedule->gang || !missed)
        invariant_broken(c, &invariant_outcome, "failed by the loss of a node, %s",
                         c->schedule->gang ? "and none is lost" : "which was to be replaced");
}

/* The coordinator's clock may run 1 % fast; what it has seen is a little older than the store. */
static void judge_too_few(struct sim *c) {
    int64_t few_ns = c->now_ns - c->enough.few_ns, enough_ns = c->now_ns - c->enough.since_ns;
    if (c->max_free_rounds && c->judge.free_rounds >= c->max_free_rounds)
        return; /* it was the rounds without cost of which there were too many */
    if (c->schedule->seated)
        return; /* two sessions may be of one node */
    if (c->enough.now && enough_ns > c->timing.suspect_ns + 200 * SIM_MS)
        invariant_broken(c, &invariant_outcome,
                         "failed for too few nodes, though there have been %d for %lld ms", c->min,
                         (long long)(enough_ns / SIM_MS));
    else if (few_ns < c->join_timeout_ns / 100 * 98)
        invariant_broken(c, &invariant_outcome,
                         "failed for too few nodes, %lld ms after there were %d",
                         (long long)(few_ns / SIM_MS), c->min);
}

static void on_head(struct sim *c, const struct head_change *h) {
    if (h->to->phase != HEAD_CLOSED)
        return;
    if (h->to->outcome == OUTCOME_SUCCEEDED)
        judge_succeeded(c);
    else if (!h->settles && h->to->failure.node[0])
        judge_gang(c, h);
    else if (!h->settles)
        judge_too_few(c);
    else if (h->to->restarts <= c->max_restarts)
        invariant_broken(c, &invariant_outcome, "failed with %d restarts of %d", h->to->restarts,
                         c->max_restarts);
}

static bool fits_outcome(int code, enum sim_outcome o) {
    return (code == 0 && o == SIM_SUCCEEDED) || (code == 1 && o == SIM_FAILED);
}

/* In the trouble; or right after it, or when it has just woken: then it has not had the time to
 * hear the store. Or it has given up before, and its workers could not be reaped until now. */
static bool may_give_up(const struct sim *c, int node) {
    const struct sim_node *n = &c->nodes[node];
    int64_t asks_ns = 1000 * SIM_MS + 3 * c->timing.hb_ns;
    int64_t from_ns = c->now_ns - asks_ns;
    return !c->calm_now || from_ns < c->schedule->trouble_ns || from_ns < n->stopped_until_ns ||
           from_ns < n->stuck_until_ns;
}

/* For workers that cannot be reaped; or were until a moment ago, while it was stopped: it had
 * waited its time, and hears of it only now. */
static bool waits_for_workers(const struct sim *c, int node) {
    const struct sim_node *n = &c->nodes[node];
    int64_t moment_ns = 2 * c->timing.hb_ns;
    bool woken = n->stopped_until_ns && c->now_ns - n->stopped_until_ns < moment_ns;
    return n->group.reaped_ns > c->now_ns - (woken ? moment_ns : 0);
}

/* Who ends by itself ends with the outcome; a leaver with its signal; and one whose workers cannot
 * be reaped with 1, whatever the others come to. Where two attempts meet, one is refused. */
static void on_exit(struct sim *c, int node, int code) {
    enum sim_outcome o = c->result->outcome;
    bool stuck = waits_for_workers(c, node);
    if (stuck)
        sim_mark(c, SIM_MARK_AGENT_STUCK);
    bool fits = (code == 1 && stuck) || (code == 69 && may_give_up(c, node)) ||
                fits_outcome(code, o) || (code == 0 && c->ended[SIM_SUCCEEDED]) ||
                (code == 1 && c->ended[SIM_FAILED]) ||
                (c->nodes[node].signaled && code == 128 + SIGTERM) || (code == 64 && c->others);
    if (!fits)
        invariant_broken(c, &invariant_outcome, "the agent of n%d ends with %d, the outcome is %d",
                         node, code, o);
}

/* With two jobs one after the other it may be of the first. */
static void on_failure(struct sim *c, int node, int64_t round) {
    if (!c->ended[SIM_FAILED] && round != c->judge.head.last_round)
        invariant_broken(c, &invariant_outcome,
                         "the agent of n%d names a failure of round %lld; the last was %lld", node,
                         (long long)round, (long long)c->judge.head.last_round);
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
