/* The kernel's word that a node which had gone off has its program again. */
#include "harness/run/evidence/evidence.h"

#include "base/str.h"

struct back {
    bool down, up;
};

static void *begin(struct run_entry *a, struct bound *b) {
    return arena_new(&a->owner->engine->arena, struct back);
}

static bool learn(struct run_entry *a, struct bound *b, const struct record *r) {
    struct back *k = b->known[EVIDENCE_agent_back];
    bool starts = record_is(r, "agent-start") || record_is(r, "store-start");
    if (!str_eq(r->node, node_plan(b->node)->name))
        return false;
    k->down |= record_is(r, "node-down") && !str_eq(record_text(r, "why"), "end");
    k->up |= k->down && starts;
    return starts;
}

static bool felt(struct bound *b) {
    const struct back *k = b->known[EVIDENCE_agent_back];
    return k->up;
}

static const char *why(const struct run_entry *a, const struct bound *b) {
    const struct back *k = b->known[EVIDENCE_agent_back];
    return k->down ? "it went off, and nothing was seen to start on it again"
                   : "it was not seen to go off";
}

const struct evidence evidence_agent_back = {
    .what = "the node went off, and its agent has exec'ed anew",
    .absent = "nothing was seen to start on it again",
    .begin = begin,
    .learn = learn,
    .felt = felt,
    .why = why,
};
