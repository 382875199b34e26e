/* Once a group has formed, its nodes are asked what they have at MASTER_PORT. */
#include "harness/run/engine.h"

#include "base/str.h"

struct master {
    int round; /* the newest whose MASTER_PORT has been looked at */
};

/* The workers of a group meet at MASTER_PORT and may close it when all are there. By the first
 * event that is sent after that the listener may be gone, but not the connections it accepted: one
 * end of each stays with the kernel for a minute. */
static bool group_has_formed(const struct record *r) {
    return r->source == SOURCE_JOB && (record_is(r, "first-collective") || record_is(r, "step"));
}

static void record(struct engine *e, const struct record *r) {
    struct master *m = own(e, master);
    int64_t port;
    if (!group_has_formed(r) || e->phase != ENGINE_RUNNING)
        return;
    const struct worker *w = rounds_worker(e->rec.rounds, r->pid);
    if (!w || w->round <= m->round || !str_to_i64(w->master_port, 1, UINT16_MAX, &port))
        return;
    m->round = w->round;
    cluster_each(n, e->cluster) {
        if (node_is_on(n) && round_on_node(e->rec.rounds->v[w->round - 1], node_plan(n)->name))
            (void)node_sockets(n, (uint16_t)port, w->round, NULL); /* it may be going */
    }
}

const struct run_part run_part_master = {
    .size = sizeof(struct master),
    .record = record,
};
