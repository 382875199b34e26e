/* The kernel's word, in /proc, that the target has a child that it had not before, which leads a
 * session of its own and which SIGTERM does not end: nothing that is done to the target's group
 * reaches it. */
#include "harness/run/evidence/evidence.h"

#include "base/sys/process.h"
#include "base/sys/proc.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct before {
    size_t n;
    pid_t pids[];
};

static void *begin(struct run_entry *a, struct bound *b) {
    pid_t *pids;
    size_t n = process_list_descendants(b->target.pid, &pids);
    struct before *before =
        arena_alloc(&a->owner->engine->arena, sizeof(*before) + n * sizeof(*pids));
    before->n = n;
    if (n)
        memcpy(before->pids, pids, n * sizeof(*pids));
    free(pids);
    return before;
}

static bool has_escaped(pid_t pid) {
    struct proc_signals s;
    return getsid(pid) == pid && proc_signals(pid, &s) &&
           (s.blocked | s.ignored) >> (SIGTERM - 1) & 1;
}

static bool felt(struct bound *b) {
    const struct before *before = b->known[EVIDENCE_child_escaped];
    pid_t *pids;
    size_t n = process_list_descendants(b->target.pid, &pids), i = 0;
    while (i < n && (process_is_among(pids[i], before->pids, before->n) || !has_escaped(pids[i])))
        i++;
    free(pids);
    return i < n;
}

const struct evidence evidence_child_escaped = {
    .what = "the target has a new child in a session of its own, which SIGTERM does not end",
    .absent = "it has no new child that would outlive it",
    .unannounced = true,
    .begin = begin,
    .felt = felt,
};
