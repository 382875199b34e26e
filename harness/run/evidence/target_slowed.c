/* The kernel's word, in /proc, that a process stands still at one time and runs at another. */
#include "harness/run/evidence/evidence.h"
#include "base/sys/proc.h"

struct slowed {
    bool stood, ran;
};

static void *begin(struct run_entry *a, struct bound *b) {
    return arena_new(&a->owner->engine->arena, struct slowed);
}

static bool felt(struct bound *b) {
    struct slowed *s = b->known[EVIDENCE_target_slowed];
    bool stands = proc_stands_still(b->target.pid);
    s->stood |= stands;
    s->ran |= s->stood && !stands;
    return s->stood && s->ran;
}

const struct evidence evidence_target_slowed = {
    .what = "the target was seen to stand still, and to run again",
    .absent = "it was not seen to stand still and then to run again",
    .unannounced = true,
    .momentary = true,
    .begin = begin,
    .felt = felt,
};
