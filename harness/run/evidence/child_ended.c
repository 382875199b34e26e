/* The kernel's word, in /proc, that a process below the target has ended. */
#include "harness/run/evidence/evidence.h"

#include "base/sys/process.h"

#include <stdlib.h>

struct children {
    size_t n;
    struct child {
        pid_t pid;
        uint64_t start_ticks;
    } v[];
};

static void *begin(struct run_entry *a, struct bound *b) {
    pid_t *pids;
    size_t n = process_list_descendants(b->target.pid, &pids);
    struct children *c =
        arena_alloc(&a->owner->engine->arena, sizeof(*c) + n * sizeof(struct child));
    c->n = 0;
    for (size_t i = 0; i < n; i++) {
        c->v[c->n].pid = pids[i];
        c->n += process_start_ticks(pids[i], &c->v[c->n].start_ticks) == 0;
    }
    free(pids);
    return c;
}

static bool has_ended(const struct child *c) {
    struct process_look now;
    return process_look(c->pid, &now) != 0 || now.start_ticks != c->start_ticks ||
           now.state == 'Z' || now.state == 'X';
}

static bool felt(struct bound *b) {
    const struct children *c = b->known[EVIDENCE_child_ended];
    size_t i = 0;
    while (i < c->n && !has_ended(&c->v[i]))
        i++;
    return i < c->n;
}

const struct evidence evidence_child_ended = {
    .what = "a process that the target had started has ended",
    .absent = "all processes that the target had started live",
    .unannounced = true,
    .begin = begin,
    .felt = felt,
};
