#include "harness/run/device_snapshots.h"

#include "base/sys/clock.h"
#include "harness/observe/devices.h"

/* When the devices are looked at. The driver tells of no change by itself, so each look hangs on an
 * event: before the job, at a round's first worker, when all of its workers have stepped, when its
 * first one has ended and when its last one has, and when the job has ended. */

struct device_snapshots {
    struct devices *devices;    /* NULL: no node has any */
    int begun, running, ending; /* the newest rounds whose devices were looked at */
    size_t ended;               /* so many rounds were looked at when they had ended */
};

static void begin(struct engine *e) {
    struct device_snapshots *l = own(e, device_snapshots);
    const struct plan *p = e->plan;
    struct err err = {0};
    const char **uuids = arena_array(&e->arena, const char *, p->devices_n + 1);
    size_t n = 0;
    for (size_t i = 0; i < p->devices_n; i++)
        if (p->devices[i].nodes)
            uuids[n++] = p->devices[i].uuid;
    if (n)
        l->devices = devices_new(uuids, n, &err);
    if (!n || l->devices)
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

void device_snapshots_take(struct engine *e, const char *at, int round) {
    const struct device_snapshots *l = own(e, device_snapshots);
    if (!l->devices)
        return;
    size_t on = 0;
    struct devices_node *v = arena_array(&e->arena, struct devices_node, e->plan->nodes_n + 1);
    cluster_each(n, e->cluster) {
        struct target first;
        node_target(n, &first);
        if (node_is_on(n) && first.pid)
            v[on++] = (struct devices_node){node_plan(n)->name, first.pid};
    }
    struct json_writer *w = engine_record(e, SOURCE_KERNEL, "devices");
    int64_t begin_ns = clock_monotonic_ns();
    json_put_string(w, "at", at);
    json_put_i64(w, "round", round);
    if (!round)
        put_given(e, w);
    devices_put(l->devices, v, on, w);
    json_put_i64(w, "took_ns", clock_monotonic_ns() - begin_ns);
    engine_recorded(e);
}

static void look_at_round(struct engine *e, struct device_snapshots *l, const struct record *r) {
    const struct rounds *rs = e->rec.rounds;
    if (!rs->n || e->phase > ENGINE_ENDING)
        return;
    const struct round *newest = rs->v[rs->n - 1];
    const struct worker *w = rounds_worker(rs, r->pid);
    if (record_is(r, "worker-start") && l->begun < newest->number) {
        l->begun = newest->number;
        device_snapshots_take(e, "round-start", newest->number);
    } else if (record_is(r, "step") && l->running < newest->number && newest->complete &&
               round_stepped(newest) == newest->n) {
        l->running = newest->number;
        device_snapshots_take(e, "round", newest->number);
    } else if (record_is(r, "worker-exit") && w && l->ending < w->round) {
        l->ending = w->round;
        device_snapshots_take(e, "first-end", w->round);
    }
}

static void record(struct engine *e, const struct record *r) {
    struct device_snapshots *l = own(e, device_snapshots);
    const struct rounds *rs = e->rec.rounds;
    if (!l->devices)
        return;
    look_at_round(e, l, r);
    /* Not at round_end: the next round may begin while the directory is read. */
    while (record_is(r, "worker-exit") && l->ended < rs->n && round_ended_ns(rs->v[l->ended]))
        device_snapshots_take(e, "round-end", rs->v[l->ended++]->number);
}

static void close_devices(struct engine *e) {
    struct device_snapshots *l = own(e, device_snapshots);
    l->devices = devices_free(l->devices);
}

const struct run_part run_part_device_snapshots = {
    .size = sizeof(struct device_snapshots),
    .begin = begin,
    .record = record,
    .close = close_devices,
};
