/* Compares the end of the store's host with the ends of the others. */
#include "harness/invariants/judge.h"

/* Long enough for what was cut off or silent to be known as such, and for who came to be seen. */
static const int64_t SETTLED_NS = 10000 * JUDGE_MS;

static bool is_served(struct judge *j, int node) {
    const struct judged_node *n = judge_node(j, node);
    const char *uid = j->ops->session(j->world, node);
    return uid && n->stopped_until_ns <= j->now_ns && n->booted_ns <= j->now_ns - SETTLED_NS &&
           judge_has_session(j, j->inc, uid);
}

/* A store in its host's process forgets only when that ends. One that is emptied while its host's
 * agent lives is of the simulation alone: the agent looks for others in a job that is no more. */
static bool is_emptied(const struct judge *j) {
    return j->wiped.emptied_ns && j->wiped.emptied_ns >= judge_node(j, 0)->booted_ns;
}

static void on_exit(struct judge *j, int node, int code) {
    if (!j->times || !j->job.hosted || node != 0 || code == 64 || is_emptied(j))
        return;
    if (j->others)
        return; /* they may be guests of another attempt */
    int64_t slept_ns = judge_node(j, 0)->stopped_until_ns;
    int64_t since_ns = slept_ns > j->times->healed_ns ? slept_ns : j->times->healed_ns;
    bool settled = j->now_ns - SETTLED_NS > since_ns;
    if (settled)
        judge_risk(j, INVARIANT_host_last);
    for (int i = 1; settled && i < j->n_nodes; i++)
        if (is_served(j, i))
            invariant_broken(j, &invariant_host_last,
                             "n0 serves the store, and ends while n%d has a session", i);
}

const struct invariant invariant_host_last = {
    .name = "host_last",
    .number = "I6",
    .summary = "the host of the store ends last",
    .text = "An agent through which the others reach the store does not end while one of them "
            "has a session: it would lose them the job's outcome.",
    .check = "one_outcome",
    .on_exit = on_exit,
};
