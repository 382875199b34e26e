#include "harness/run/counting.h"

#include "base/sys/clock.h"
#include "harness/run/device_snapshots.h"
#include "harness/run/directory.h"
#include "harness/run/pause.h"

/* The helpers count as soon as nothing is left, and when its time is over. */
static const int64_t ANSWER_NS = 2000000000; /* behind what is given to the processes */

struct counting {
    const struct node **awaited; /* their program has ended, their leftovers are to come */
    size_t n;
    int asked; /* of the wire, and not answered */
    bool last; /* the one before the end has been asked for */
    struct loop_source *timer;
};

void counting_ask(struct engine *e) {
    own(e, counting)->asked++;
    cluster_count(e->cluster);
}

void counting_go_on(struct engine *e) {
    struct counting *c = own(e, counting);
    if (e->phase != ENGINE_ENDING || c->n || c->last || directory_is_listed(e))
        return;
    c->last = true;
    counting_ask(e);
}

static void put_frames(struct engine *e, struct json_writer *w, const char *key,
                       const uint64_t frames[CLUSTER_NODES_MAX]) {
    struct node **nodes = cluster_nodes(e->cluster);
    json_object(w, key);
    for (size_t i = 0; nodes[i] && i < CLUSTER_NODES_MAX; i++)
        if (frames[i])
            json_put_i64(w, node_plan(nodes[i])->name, (int64_t)frames[i]);
    json_end_object(w);
}

static bool has_any(const uint64_t frames[CLUSTER_NODES_MAX]) {
    for (size_t i = 0; i < CLUSTER_NODES_MAX; i++)
        if (frames[i])
            return true;
    return false;
}

static void put_passed(struct engine *e, struct json_writer *w, const struct wire_counters *c) {
    json_object(w, "passed_to");
    for (size_t i = 0; i < PLANES_N; i++)
        if (has_any(c->passed_to[i]))
            put_frames(e, w, plane_names[i], c->passed_to[i]);
    json_end_object(w);
}

/* Where nodes have no wire the kernel counts at their sockets, and only at those that are cut. */
static void record_drops(struct engine *e, struct node *n, const struct wire_counters *c) {
    struct json_writer *w = engine_record(e, SOURCE_KERNEL, "socket-drops");
    json_put_string(w, "node", node_plan(n)->name);
    if (!c->in_unknown)
        json_put_i64(w, "dropped_in", (int64_t)c->dropped_in);
    json_put_i64(w, "dropped_out", (int64_t)c->dropped_out);
    put_frames(e, w, "cut_to", c->cut_to);
    put_passed(e, w, c);
    if (node_plan(n)->host)
        json_put_string(w, "by", c->by_table ? "table" : "sockets");
    engine_recorded(e);
}

void counting_counters(void *arg, struct node *n, const struct wire_counters *c) {
    struct engine *e = arg;
    if (c->at_sockets) {
        record_drops(e, n, c);
        return;
    }
    struct json_writer *w = engine_record(e, SOURCE_WIRE, "wire");
    json_put_string(w, "node", node_plan(n)->name);
    json_put_i64(w, "frames_in", (int64_t)c->frames_in);
    json_put_i64(w, "bytes_in", (int64_t)c->bytes_in);
    json_put_i64(w, "frames_out", (int64_t)c->frames_out);
    json_put_i64(w, "bytes_out", (int64_t)c->bytes_out);
    json_put_i64(w, "dropped_in", (int64_t)c->dropped_in);
    json_put_i64(w, "dropped_out", (int64_t)c->dropped_out);
    json_put_i64(w, "data_bytes_out", (int64_t)c->data_bytes_out);
    json_put_i64(w, "lost", (int64_t)c->lost);
    put_frames(e, w, "cut_to", c->cut_to);
    put_passed(e, w, c);
    put_frames(e, w, "bytes_to", c->bytes_to);
    for (size_t i = 0; i < DEEDS_N; i++)
        if (has_any(c->done_to[i]))
            put_frames(e, w, impairment_deed_keys[i], c->done_to[i]);
    engine_recorded(e);
}

/* ---- the end of it ---- */

static void finish(struct engine *e) {
    if (e->phase != ENGINE_ENDING)
        return;
    loop_timer_off(own(e, counting)->timer);
    device_snapshots_take(e, "job-end", 0);
    if (!pause_begin(e))
        engine_take_down(e);
}

/* Those that a fault has asked for come first. */
void counting_counted(void *arg) {
    struct counting *c = own(arg, counting);
    if (--c->asked == 0 && c->last)
        finish(arg);
}

static void on_timer(void *arg, int64_t now) {
    finish(arg); /* whoever has not answered by now will not */
}

void counting_wait_anew(struct engine *e) {
    if (e->phase == ENGINE_ENDING)
        loop_timer_at(own(e, counting)->timer,
                      clock_monotonic_ns() + cluster_linger_ns(e->plan) + ANSWER_NS);
}

static void begin(struct engine *e) {
    struct counting *c = own(e, counting);
    /* A node may be switched on again: at most once per entry of the timeline. */
    c->awaited =
        arena_array(&e->arena, const struct node *, (e->plan->entries_n + 1) * e->plan->nodes_n);
    c->timer = loop_timer(e->loop, on_timer, e);
}

/* A node is counted, or there is nothing left of it to count. */
static void done(struct engine *e, const char *node) {
    struct counting *c = own(e, counting);
    for (size_t i = 0; i < c->n; i++)
        if (c->awaited[i] == cluster_node(e->cluster, node))
            c->awaited[i] = c->awaited[--c->n];
    counting_go_on(e);
}

/* A node whose program ends twice, being started again, is counted once. */
static void await(struct engine *e, const struct node *n) {
    struct counting *c = own(e, counting);
    for (size_t i = 0; i < c->n; i++)
        if (c->awaited[i] == n)
            return;
    c->awaited[c->n++] = n;
}

static void record(struct engine *e, const struct record *r) {
    if (record_is(r, "agent-exit") && e->phase == ENGINE_RUNNING)
        await(e, cluster_node(e->cluster, r->node));
    else if (record_is(r, "leftovers") || record_is(r, "node-down"))
        done(e, r->node);
    else if (record_is(r, "job-end")) {
        counting_wait_anew(e);
        counting_go_on(e);
    }
}

const struct run_part run_part_counting = {
    .size = sizeof(struct counting),
    .begin = begin,
    .record = record,
};
