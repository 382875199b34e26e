#include "harness/run/hang.h"

#include "base/sys/clock.h"
#include "harness/observe/hang_dump.h"
#include "harness/run/token.h"

#include <errno.h>

struct hang {
    bool looked_at; /* what hangs has been written down */
    size_t awaited; /* so many helpers on other hosts have not told all */
    struct loop_source *on_late;
    void (*then)(void *arg, bool looked);
    void *arg;
};

/* Long enough for a slow host, short enough to be waited for: while it is done nothing else is. */
static const int64_t BUDGET_NS = 5000000000;
/* For the way to other hosts, besides. */
static const int64_t WAY_NS = 10000000000;

static struct hang_dump_node node_of(struct engine *e, struct node *n) {
    const struct plan_node *p = node_plan(n), *store = plan_find_node(e->plan, "store");
    struct target first;
    node_target(n, &first);
    return (struct hang_dump_node){
        .name = p->name,
        .first = first.pid,
        .far = p->host,
        .log = arena_printf(&e->arena, "logs/%s/%s.log", p->name, p->is_store ? "store" : "agent"),
        .store = e->plan->endpoint && store ? store->addr : NULL,
        .store_port = PLAN_STORE_PORT,
        .token = token_entry(e),
    };
}

static bool look_here(struct engine *e) {
    struct hang_dump_node *v = arena_array(&e->arena, struct hang_dump_node, e->plan->nodes_n + 1);
    struct err err = {0};
    size_t on = 0;
    cluster_each(n, e->cluster) {
        if (node_is_on(n))
            v[on++] = node_of(e, n);
    }
    int r = hang_dump_make(e->spec->folder, v, on, e->rec.rounds, BUDGET_NS, &err);
    return r == 0 || r == -ETIME;
}

static void tell(struct hang *h) {
    void (*then)(void *arg, bool looked) = h->then;
    h->then = NULL;
    h->on_late = loop_source_free(h->on_late);
    if (then)
        then(h->arg, h->looked_at);
}

static void on_late(void *arg, int64_t now_ns) {
    tell(arg);
}

void hang_look(struct engine *e, void (*then)(void *arg, bool looked), void *arg) {
    struct hang *h = own(e, hang);
    if (h->then)
        return;
    h->then = then;
    h->arg = arg;
    h->awaited = cluster_dump(e->cluster, BUDGET_NS); /* they look while we do */
    h->looked_at = look_here(e);
    if (!h->awaited) {
        tell(h);
        return;
    }
    h->on_late = loop_timer(e->loop, on_late, h);
    loop_timer_at(h->on_late, clock_monotonic_ns() + BUDGET_NS + WAY_NS);
}

void hang_take(struct engine *e, const struct node *n, pid_t pid, const char *name,
               const struct buf *text) {
    hang_dump_put(e->spec->folder, node_plan(n)->name, pid, name, text, e->rec.rounds);
}

void hang_over(struct engine *e) {
    struct hang *h = own(e, hang);
    if (h->on_late && h->awaited && --h->awaited == 0)
        loop_timer_at(h->on_late, 0); /* not here: its node may be ending */
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
