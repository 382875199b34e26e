#include "harness/run/engine.h"

#include "harness/observe/autopsy.h"

#include <errno.h>

/* Long enough for a slow host, short enough to be waited for: while it is done nothing else is. */
static const int64_t BUDGET_NS = 5000000000;

static struct autopsy_node node_of(struct engine *e, struct node *n) {
    const struct plan_node *p = node_plan(n), *store = plan_find_node(e->plan, "store");
    struct target first;
    node_target(n, &first);
    return (struct autopsy_node){
        .name = p->name,
        .first = first.pid,
        .log = arena_printf(&e->arena, "logs/%s/%s.log", p->name, p->is_store ? "store" : "agent"),
        .store = e->plan->endpoint && store ? store->addr : NULL,
        .store_port = PLAN_STORE_PORT,
        .token = e->token,
    };
}

bool hang_look(struct engine *e) {
    struct node **nodes;
    size_t n = cluster_nodes(e->cluster, &nodes), on = 0;
    struct autopsy_node *v = arena_array(&e->arena, struct autopsy_node, n + 1);
    struct err err = {0};
    for (size_t i = 0; i < n; i++)
        if (node_is_on(nodes[i]))
            v[on++] = node_of(e, nodes[i]);
    int r = autopsy_make(e->spec->folder, v, on, e->rec.rounds, BUDGET_NS, &err);
    return e->looked_at = r == 0 || r == -ETIME;
}

void hang_counters(struct engine *e, struct node *n, const struct wire_counters *c) {
    if (!e->looked_at)
        return;
    struct buf out = {0};
    buf_printf(&out,
               "towards %s   %llu frames, %llu bytes, %llu dropped\n"
               "from %s      %llu frames, %llu bytes, %llu dropped\n"
               "lost by a wire that was too slow: %llu\n",
               node_plan(n)->name, (unsigned long long)c->frames_in,
               (unsigned long long)c->bytes_in, (unsigned long long)c->dropped_in,
               node_plan(n)->name, (unsigned long long)c->frames_out,
               (unsigned long long)c->bytes_out, (unsigned long long)c->dropped_out,
               (unsigned long long)c->lost);
    /* A node that was off has no folder. */
    folder_write(e->spec->folder, arena_printf(&e->arena, "hang/%s/wire.txt", node_plan(n)->name),
                 out.data, out.len, NULL);
    buf_fini(&out);
}
