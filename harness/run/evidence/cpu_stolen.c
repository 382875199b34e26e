/* The kernel's word, in schedstat, that what runs on a node waited for processors while something of
 * the node that is none of its program's had them. */
#include "harness/run/evidence/evidence.h"
#include "base/sys/proc.h"

#include "base/sys/process.h"

#include <stdlib.h>

/* Less may be the machine's own work. */
static const int64_t enough_ns = 10000000;

struct stolen {
    int64_t taken_ns, waited_ns; /* when it was about to begin */
    bool seen;
};

static int64_t waited_ns(pid_t root) {
    pid_t *pids;
    int64_t all = 0;
    size_t n = process_list_descendants(root, &pids);
    for (size_t i = 0; i < n; i++)
        all += proc_times(pids[i]).waited_ns;
    free(pids);
    return all;
}

static pid_t root_of(const struct bound *b) {
    return b->target.pid;
}

static void *begin(struct run_entry *a, struct bound *b) {
    struct stolen *s = arena_new(&a->owner->engine->arena, struct stolen);
    s->taken_ns = proc_times(root_of(b)).ran_ns;
    s->waited_ns = waited_ns(root_of(b));
    return s;
}

/* Whoever has ended waits no more, and is missing from the sum. */
static bool felt(struct bound *b) {
    struct stolen *s = b->known[EVIDENCE_cpu_stolen];
    if (!s->seen && proc_times(root_of(b)).ran_ns - s->taken_ns >= enough_ns)
        s->seen = waited_ns(root_of(b)) - s->waited_ns >= enough_ns;
    return s->seen;
}

const struct evidence evidence_cpu_stolen = {
    .what = "what runs on the node waited while something else had its processors",
    .absent = "what runs on it has not waited for a processor",
    .unannounced = true,
    .momentary = true,
    .begin = begin,
    .felt = felt,
};
