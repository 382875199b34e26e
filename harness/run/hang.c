#include "harness/run/hang.h"

#include "harness/observe/hang_dump.h"
#include "harness/run/token.h"

#include <errno.h>

struct hang {
    bool looked_at; /* what hangs has been written down */
};

/* Long enough for a slow host, short enough to be waited for: while it is done nothing else is. */
static const int64_t BUDGET_NS = 5000000000;

static struct hang_dump_node node_of(struct engine *e, struct node *n) {
    const struct plan_node *p = node_plan(n), *store = plan_find_node(e->plan, "store");
    struct target first;
    node_target(n, &first);
    return (struct hang_dump_node){
        .name = p->name,
        .first = first.pid,
        .log = arena_printf(&e->arena, "logs/%s/%s.log", p->name, p->is_store ? "store" : "agent"),
        .store = e->plan->endpoint && store ? store->addr : NULL,
        .store_port = PLAN_STORE_PORT,
        .token = token_entry(e),
    };
}

bool hang_look(struct engine *e) {
    struct hang *h = own(e, hang);
    struct hang_dump_node *v = arena_array(&e->arena, struct hang_dump_node, e->plan->nodes_n + 1);
    struct err err = {0};
    size_t on = 0;
    cluster_each(n, e->cluster) {
        if (node_is_on(n))
            v[on++] = node_of(e, n);
    }
    int r = hang_dump_make(e->spec->folder, v, on, e->rec.rounds, BUDGET_NS, &err);
    return h->looked_at = r == 0 || r == -ETIME;
}

static long long count(const struct record *r, const char *key) {
    return (long long)record_i64(r, key, 0);
}

/* What the wire counts in the end belongs to it. */
static void record(struct engine *e, const struct record *r) {
    const struct hang *h = own(e, hang);
    if (!h->looked_at || !record_is(r, "wire"))
        return;
    struct buf out = {0};
    buf_printf(&out,
               "towards %s   %lld frames, %lld bytes, %lld dropped\n"
               "from %s      %lld frames, %lld bytes, %lld dropped\n"
               "lost by a wire that was too slow: %lld\n",
               r->node, count(r, "frames_in"), count(r, "bytes_in"), count(r, "dropped_in"),
               r->node, count(r, "frames_out"), count(r, "bytes_out"), count(r, "dropped_out"),
               count(r, "lost"));
    /* A node that was off has no folder. */
    folder_write(e->spec->folder, arena_printf(&e->arena, "hang/%s/wire.txt", r->node), out.data,
                 out.len, NULL);
    buf_fini(&out);
}

const struct run_part run_part_hang = {
    .size = sizeof(struct hang),
    .record = record,
};
