/* The kernel's word, in /proc, that it asks one filter more about the calls of a process. */
#include "harness/run/evidence/evidence.h"

#include "base/sys/proc.h"

static void *begin(struct run_entry *a, struct bound *b) {
    int *before = arena_new(&a->owner->engine->arena, int);
    *before = proc_call_filters(b->target.pid);
    return before;
}

static bool felt(struct bound *b) {
    const int *before = b->known[EVIDENCE_calls_filtered];
    return *before >= 0 && proc_call_filters(b->target.pid) > *before;
}

const struct evidence evidence_calls_filtered = {
    .what = "a filter that was not there before decides over calls of the target",
    .absent = "no filter decides over its calls that was not there before",
    .unannounced = true,
    .begin = begin,
    .felt = felt,
};
