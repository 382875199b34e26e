/* The kernel's word, in /proc, that a process ignores a signal that it did not ignore before. */
#include "harness/run/evidence/evidence.h"
#include "base/sys/proc.h"

static void *begin(struct run_entry *a, struct bound *b) {
    struct proc_signals *before = arena_new(&a->owner->engine->arena, struct proc_signals);
    return proc_signals(b->target.pid, before) ? before : NULL;
}

static bool felt(struct bound *b) {
    const struct proc_signals *before = b->known[EVIDENCE_signal_ignored];
    struct proc_signals now;
    return before && proc_signals(b->target.pid, &now) && now.ignored & ~before->ignored;
}

const struct evidence evidence_signal_ignored = {
    .what = "the target ignores a signal that it did not ignore before",
    .absent = "it ignores no signal that it did not ignore before",
    .unannounced = true,
    .begin = begin,
    .felt = felt,
};
