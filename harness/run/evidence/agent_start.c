/* The kernel's word that what a node is there for has exec'ed. */
#include "harness/run/evidence/evidence.h"

#include "agent/base/str.h"

static bool learn(struct act *a, struct bound *b, const struct record *r) {
    (void)a;
    bool starts = record_is(r, "agent-start") || record_is(r, "store-start");
    if (b->exit_ns || !starts || !str_eq(r->node, node_plan(b->node)->name))
        return false;
    b->exit_ns = r->t_ns;
    return true;
}

static bool felt(struct bound *b) {
    return b->exit_ns;
}

const struct evidence evidence_agent_start = {
    .what = "the agent has exec'ed",
    .absent = "no agent was seen to start on it",
    .answers = true,
    .learn = learn,
    .felt = felt,
};
