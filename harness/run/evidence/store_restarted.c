/* The kernel's word that a program has ended, and that another one of its node has exec'ed since. */
#include "harness/run/evidence/evidence.h"

#include "base/str.h"

struct restarted {
    bool ended, again;
};

static void *begin(struct run_entry *a, struct bound *b) {
    return arena_new(&a->owner->engine->arena, struct restarted);
}

static bool learn(struct run_entry *a, struct bound *b, const struct record *r) {
    struct restarted *s = b->known[EVIDENCE_store_restarted];
    if (r->source != SOURCE_KERNEL || !str_eq(r->node, node_plan(b->node)->name))
        return false;
    if (record_is(r, "store-exit") && r->pid == b->target.pid && evidence_note(b, r))
        s->ended = true;
    if (s->again || !s->ended || !record_is(r, "store-start"))
        return false;
    return s->again = true;
}

static bool felt(struct bound *b) {
    const struct restarted *s = b->known[EVIDENCE_store_restarted];
    return s->again;
}

const struct evidence evidence_store_restarted = {
    .what = "the store has ended, and has exec'ed anew",
    .absent = "the store was not seen to end and to start anew",
    .answers = true,
    .begin = begin,
    .learn = learn,
    .felt = felt,
};
