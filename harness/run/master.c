#include "harness/run/engine.h"

#include "agent/base/str.h"

/* The workers of a group meet at MASTER_PORT and may close it when all are there. By the first
 * event that is sent after that the listener may be gone, but not the connections it accepted: one
 * end of each stays with the kernel for a minute. */
static bool group_has_formed(const struct record *r) {
    return r->source == SOURCE_JOB && (record_is(r, "first-collective") || record_is(r, "step"));
}

void master_seen(struct engine *e, const struct record *r) {
    struct node **nodes;
    int64_t port;
    if (!group_has_formed(r) || e->phase != ENGINE_RUNNING)
        return;
    const struct worker *w = rounds_worker(e->rec.rounds, r->pid);
    if (!w || w->round <= e->master_round || !str_to_i64(w->master_port, 1, UINT16_MAX, &port))
        return;
    e->master_round = w->round;
    size_t n = cluster_nodes(e->cluster, &nodes);
    for (size_t i = 0; i < n; i++)
        if (node_is_on(nodes[i]) &&
            round_on_node(e->rec.rounds->v[w->round - 1], node_plan(nodes[i])->name))
            (void)node_sockets(nodes[i], (uint16_t)port, w->round, NULL); /* it may be going */
}

void master_found(struct engine *e, const struct node *n, uint16_t port, int round,
                  const struct json *found) {
    struct json_writer *w = engine_record(e, SOURCE_KERNEL, "listening");
    json_put_string(w, "node", node_plan(n)->name);
    json_put_i64(w, "port", port);
    json_put_i64(w, "round", round);
    if (found)
        json_put_tree(w, "found", found);
    engine_recorded(e);
}
