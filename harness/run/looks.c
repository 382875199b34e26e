#include "harness/run/engine.h"

#include "agent/sys/clock.h"

/* When the devices are looked at. The driver tells of no change by itself, so each look hangs on an
 * event: before the job, at a round's first worker, when all of its workers have stepped, when its
 * first one has ended and when its last one has, and when the job has ended. */

void looks_open(struct engine *e) {
    const struct plan *p = e->plan;
    struct err err = {0};
    const char **uuids = arena_array(&e->arena, const char *, p->devices_n + 1);
    size_t n = 0;
    for (size_t i = 0; i < p->devices_n; i++)
        if (p->devices[i].nodes)
            uuids[n++] = p->devices[i].uuid;
    if (n)
        e->devices = devices_new(uuids, n, &err);
    if (!n || e->devices)
        return;
    struct json_writer *w = engine_record(e, SOURCE_KERNEL, "devices"); /* nothing can be known */
    json_put_string(w, "at", "start");
    json_put_string(w, "error", err.msg);
    engine_recorded(e);
}

/* Which devices each node was given. */
static void put_given(struct engine *e, struct json_writer *w) {
    const struct plan *p = e->plan;
    json_object(w, "nodes");
    for (size_t i = 0; i < p->nodes_n; i++) {
        json_array(w, p->nodes[i].name);
        for (size_t k = 0; k < p->nodes[i].devices_n; k++)
            json_put_string(w, NULL, p->nodes[i].devices[k]->uuid);
        json_end_array(w);
    }
    json_end_object(w);
}

void looks_take(struct engine *e, const char *at, int round) {
    struct node **nodes;
    if (!e->devices)
        return;
    size_t n = cluster_nodes(e->cluster, &nodes), on = 0;
    struct devices_node *v = arena_array(&e->arena, struct devices_node, n + 1);
    for (size_t i = 0; i < n; i++) {
        struct target first;
        node_target(nodes[i], &first);
        if (node_is_on(nodes[i]) && first.pid)
            v[on++] = (struct devices_node){node_plan(nodes[i])->name, first.pid};
    }
    struct json_writer *w = engine_record(e, SOURCE_KERNEL, "devices");
    int64_t begin_ns = clock_monotonic_ns();
    json_put_string(w, "at", at);
    json_put_i64(w, "round", round);
    if (!round)
        put_given(e, w);
    devices_put(e->devices, v, on, w);
    json_put_i64(w, "took_ns", clock_monotonic_ns() - begin_ns);
    engine_recorded(e);
}

static bool all_stepped(const struct round *r) {
    for (size_t i = 0; i < r->n; i++)
        if (!r->workers[i]->first_step_ns)
            return false;
    return r->complete;
}

void looks_seen(struct engine *e, const struct record *r) {
    const struct rounds *rs = e->rec.rounds;
    if (!e->devices || !rs->n || e->phase > ENGINE_ENDING)
        return;
    const struct round *newest = rs->v[rs->n - 1];
    const struct worker *w = rounds_worker(rs, r->pid);
    if (record_is(r, "worker-start") && e->look_begun < newest->number) {
        e->look_begun = newest->number;
        looks_take(e, "round-start", newest->number);
    } else if (record_is(r, "step") && e->look_running < newest->number && all_stepped(newest)) {
        e->look_running = newest->number;
        looks_take(e, "round", newest->number);
    } else if (record_is(r, "worker-exit") && w && e->look_ending < w->round) {
        e->look_ending = w->round;
        looks_take(e, "first-end", w->round);
    }
}
