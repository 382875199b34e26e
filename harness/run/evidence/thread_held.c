/* The kernel's word, in /proc, that a thread is held as by a debugger while the process lives. */
#include "harness/run/evidence/evidence.h"
#include "base/sys/proc.h"

static bool felt(struct bound *b) {
    return proc_has_held_thread(b->target.pid);
}

const struct evidence evidence_thread_held = {
    .what = "a thread of the target is held",
    .absent = "no thread of it was seen to be held",
    .unannounced = true,
    .momentary = true,
    .felt = felt,
};
