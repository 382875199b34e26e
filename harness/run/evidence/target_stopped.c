/* The kernel's word, in /proc, that somebody stands still: a process, or all of a node. */
#include "harness/run/evidence/evidence.h"
#include "harness/run/evidence/seen.h"
#include "base/sys/proc.h"

static bool felt(struct bound *b) {
    if (b->target.kind == TARGET_NODE)
        return node_far_number(b->node) ? seen_stands_still(node_far_number(b->node))
                                        : proc_all_stand_still(b->target.pid);
    return seen_stands_still(b->target.pid);
}

const struct evidence evidence_target_stopped = {
    .what = "every thread of the target stands still",
    .absent = "not every thread of it was seen to stand still",
    .unannounced = true,
    .momentary = true,
    .felt = felt,
};
