#include "harness/sim/invariants/judging.h"

#include <string.h>

/* Long enough for what was cut off or silent to be known as such, and for who came to be seen. */
static const int64_t SETTLED_NS = 10000 * SIM_MS;

static bool is_served(struct sim *c, const struct sim_node *n) {
    struct key like = {.kind = KEY_SESSION};
    if (!n->core || n->stopped_until_ns > c->now_ns || n->booted_ns > c->now_ns - SETTLED_NS)
        return false;
    memcpy(like.inc, c->judge.inc, sizeof(like.inc));
    return sim_judge_has_session(c, &like, rendezvous_uid(n->core));
}

/* A store in its host's process forgets only when that ends. One that is emptied while its host's
 * agent lives is of the simulation alone: the agent looks for others in a job that is no more. */
static bool is_emptied(const struct sim *c) {
    return c->wiped.emptied_ns && c->wiped.emptied_ns >= c->nodes[0].booted_ns;
}

static void on_exit(struct sim *c, int node, int code) {
    if (code == 64 || c->others || is_emptied(c)) /* others: may be guests of another attempt */
        return;
    int64_t slept_ns = c->nodes[0].stopped_until_ns, trouble_ns = c->schedule->trouble_ns;
    int64_t since_ns = slept_ns > trouble_ns ? slept_ns : trouble_ns;
    bool settled = c->calm_now && c->now_ns > since_ns + SETTLED_NS;
    if (node != 0 || !c->schedule->hosted || !settled)
        return;
    for (int i = 1; i < c->n_nodes; i++)
        if (is_served(c, &c->nodes[i]))
            invariant_broken(c, &invariant_host_last,
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
