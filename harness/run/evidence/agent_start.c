/* The kernel's word that what a node is there for has exec'ed. */
#include "harness/run/evidence/evidence.h"

#include "base/str.h"

static bool learn(struct run_entry *a, struct bound *b, const struct record *r) {
    bool starts = record_is(r, "agent-start") || record_is(r, "store-start");
    return starts && str_eq(r->node, node_plan(b->node)->name) && evidence_note(b, r);
}

const struct evidence evidence_agent_start = {
    .what = "the agent has exec'ed",
    .absent = "no agent was seen to start on it",
    .answers = true,
    .learn = learn,
    .felt = evidence_noted,
};
