/* The kernel's word that the program of a node was told by SIGTERM: it ended as one does that was
 * told, or had the signal handed to it. */
#include "harness/run/evidence/evidence.h"
#include "base/sys/proc.h"

#include <signal.h>

struct told {
    pid_t pid;
    bool taken;
};

static const uint64_t bit = UINT64_C(1) << (SIGTERM - 1);

static void *begin(struct run_entry *a, struct bound *b) {
    struct told *k = arena_new(&a->owner->engine->arena, struct told);
    k->pid = node_program_pid(b->node);
    return k;
}

static bool learn(struct run_entry *a, struct bound *b, const struct record *r) {
    struct told *k = b->known[EVIDENCE_notice_taken];
    bool exit = record_is(r, "agent-exit") || record_is(r, "store-exit");
    if (!exit || r->source != SOURCE_KERNEL || r->pid != k->pid)
        return false;
    k->taken |= record_i64(r, "code", 0) == 128 + SIGTERM || record_i64(r, "signal", 0) == SIGTERM;
    return k->taken;
}

static bool felt(struct bound *b) {
    struct told *k = b->known[EVIDENCE_notice_taken];
    struct proc_signals now;
    if (!k->taken && proc_signals(k->pid, &now))
        k->taken = now.caught & bit && !(now.pending & bit);
    return k->taken;
}

const struct evidence evidence_notice_taken = {
    .what = "the agent has taken SIGTERM, and the node has gone off",
    .absent = "its agent was not seen to take SIGTERM",
    .unannounced = true,
    .begin = begin,
    .learn = learn,
    .felt = felt,
};
