/* Measures how long each step takes that waits for nothing. */
#include "harness/invariants/judge.h"

#include <string.h>

/* Several messages and a step that is tried once more. */
#define SOON_NS (1500 * JUDGE_MS)

static int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static void judge_wait(struct judge *j, int64_t since_ns, const char *what) {
    int64_t settled_ns = judge_settled_ns(j);
    if (settled_ns <= since_ns)
        judge_risk(j, INVARIANT_prompt);
    if (j->now_ns - later(since_ns, settled_ns) > SOON_NS)
        invariant_broken(j, &invariant_prompt, "%s after %lld ms in which nothing was in the way",
                         what, (long long)((j->now_ns - since_ns) / JUDGE_MS));
}

static int64_t awake_ns(const struct judged_node *n) {
    return later(later(n->stopped_until_ns, n->stall_until_ns), n->booted_ns);
}

/* By who leads: from when it has nothing to wait for. */
static int64_t decided_ns(struct judge *j, const struct head_change *h) {
    const struct head_value *to = h->to;
    int64_t head_ns = j->head.at_ns, certified_ns = later(head_ns, j->times->certified_ns);
    bool enough = j->times->enough.now && j->times->enough.since_ns <= head_ns;
    if (to->phase == HEAD_FORM && j->head.phase == HEAD_END && enough)
        return head_ns;
    if (to->phase == HEAD_FORM && j->head.phase == HEAD_RUN && judge_is_lost(j, h->key->inc))
        return certified_ns;
    if (to->phase == HEAD_RUN && j->n_last && !to->brief_rounds)
        return certified_ns;
    if (to->phase == HEAD_CLOSED && to->outcome == OUTCOME_SUCCEEDED)
        return certified_ns;
    return 0;
}

static void on_head(struct judge *j, const struct head_change *h) {
    if (!j->times || !j->has_head)
        return;
    int64_t since_ns = decided_ns(j, h);
    if (since_ns && judge_is_led_since(j, since_ns))
        judge_wait(j, since_ns, "head goes on");
    if (h->to->phase != HEAD_END || h->to->cause != CAUSE_FAILURE)
        return;
    const struct judged_node *n = judge_node_of(j, h->to->failure.uid);
    if (n && n->group.failed_ns)
        judge_wait(j, later(n->group.failed_ns, awake_ns(n)), "a failure is told");
}

static void on_put(struct judge *j, const struct op *op) {
    const struct judged_node *n = judge_node_of(j, op->key.uid);
    if (!j->times || !n || n->group.round != op->key.round || n->group.alive)
        return;
    const struct judged_group *g = &n->group;
    int64_t since_ns = later(later(g->ended_ns, g->reaped_ns), awake_ns(n));
    if (op->key.kind == KEY_ACK)
        since_ns = later(since_ns, g->over_ns ? g->over_ns : j->head.at_ns);
    judge_wait(j, since_ns, op->key.kind == KEY_ACK ? "an ack comes" : "a done comes");
}

static void on_start(struct judge *j, int node, const struct round_spec *s) {
    if (j->times && j->head.phase == HEAD_RUN && j->head.round == s->round)
        judge_wait(j, later(j->head.at_ns, awake_ns(judge_node(j, node))), "workers begin");
}

const struct invariant invariant_prompt = {
    .name = "prompt",
    .number = "I5",
    .summary = "what waits for nothing is done at once",
    .text = "When nothing is disturbed, and who leads has led for as long, a round that failed or "
            "has lost a node is formed again, one that all have acked is run, one that all have "
            "done is closed, workers are started, and their failure, their success and their end "
            "are told, each within a second and a half.",
    .kinds = 1u << KEY_ACK | 1u << KEY_DONE,
    .on_put = on_put,
    .on_head = on_head,
    .on_start = on_start,
};
