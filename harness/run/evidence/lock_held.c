/* The kernel's word, in /proc, that a thread is held as by a debugger, that others of its process wait
 * in futex(2), and that none of them runs. */
#include "harness/run/evidence/evidence.h"
#include "base/sys/proc.h"

static bool felt(struct bound *b) {
    struct proc_threads t = proc_threads(b->target.pid);
    return t.held && t.waiting && !t.running;
}

const struct evidence evidence_lock_held = {
    .what = "a thread of the target is held, and its others wait for a lock",
    .absent = "its other threads, if it has any, were not seen to wait while one was held",
    .unannounced = true,
    .momentary = true,
    .felt = felt,
};
