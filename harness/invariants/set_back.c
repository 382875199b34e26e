/* Watches agents that have seen that their store was set back to an older state. */
#include "harness/invariants/judge.h"

#include <signal.h>

/* For a request that is under way, and for SIGKILL to act. */
#define MARGIN_NS (1000 * JUDGE_MS)

static void on_strange(struct judge *j, int node, int64_t revision, int64_t known) {
    (void)node, (void)revision, (void)known;
    judge_risk(j, INVARIANT_set_back);
}

static void on_start(struct judge *j, int node, const struct round_spec *s) {
    if (judge_node(j, node)->strange_ns)
        invariant_broken(j, &invariant_set_back,
                         "n%d starts round %lld of a store that was set back, and has seen it",
                         node, (long long)s->round);
}

/* Who had heard of the outcome before ends with that. */
static bool fits(const struct judge *j, int node, int code) {
    const struct judged_node *n = judge_node(j, node);
    return code == 69 || (n->signaled && code == 128 + SIGTERM) ||
           (code == 1 && judge_waits_for_workers(j, node)) ||
           (code == 0 && j->outcome == OUTCOME_SUCCEEDED) ||
           (code == 1 && j->outcome == OUTCOME_FAILED);
}

static void on_exit(struct judge *j, int node, int code) {
    const struct judged_node *n = judge_node(j, node);
    int64_t from_ns[] = {n->strange_ns, n->stopped_until_ns, n->stall_until_ns, n->group.reaped_ns};
    int64_t since_ns = 0;
    if (!n->strange_ns)
        return;
    for (size_t i = 0; i < sizeof(from_ns) / sizeof(*from_ns); i++)
        since_ns = from_ns[i] > since_ns ? from_ns[i] : since_ns;
    if (!fits(j, node, code))
        invariant_broken(j, &invariant_set_back,
                         "the agent of n%d has seen that its store was set back, and ends with %d",
                         node, code);
    else if (j->now_ns - since_ns > j->job.shutdown_grace_ns + MARGIN_NS)
        invariant_broken(j, &invariant_set_back,
                         "the agent of n%d ends %lld ms after it has seen that its store was set "
                         "back; its workers have %lld ms",
                         node, (long long)((j->now_ns - since_ns) / JUDGE_MS),
                         (long long)(j->job.shutdown_grace_ns / JUDGE_MS));
}

const struct invariant invariant_set_back = {
    .name = "set_back",
    .number = "I7",
    .summary = "an agent that sees its store set back goes on with it no more",
    .text = "A store that was set back to a backup is not the one that was known: an agent that "
            "reads of its run in it, at an earlier revision than it knew when it asked, starts no "
            "workers any more, ends those that it has within their grace, and ends with 69. Of "
            "such a store nothing else is promised, but that every agent ends.",
    .outlasts = true,
    .on_start = on_start,
    .on_exit = on_exit,
    .on_strange = on_strange,
};
