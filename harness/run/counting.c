#include "harness/run/engine.h"

/* What is counted, on the wire and in the nodes whose agent has ended, before the cluster is taken
 * down. */

void engine_count(struct engine *e) {
    e->counts++;
    cluster_count(e->cluster);
}

void counting_go_on(struct engine *e) {
    if (e->phase != ENGINE_ENDING || e->counting_n || e->last_count ||
        directory_is_listed(e->directory))
        return;
    e->last_count = true;
    engine_count(e);
}

/* A node is counted, or there is nothing left of it to count. */
void counting_done(struct engine *e, const struct node *n) {
    for (size_t i = 0; i < e->counting_n; i++)
        if (e->counting[i] == n)
            e->counting[i] = e->counting[--e->counting_n];
    counting_go_on(e);
}

static void put_frames(struct engine *e, struct json_writer *w, const char *key,
                       const uint64_t frames[CLUSTER_NODES_MAX]) {
    struct node **nodes;
    size_t n = cluster_nodes(e->cluster, &nodes);
    json_object(w, key);
    for (size_t i = 0; i < n && i < CLUSTER_NODES_MAX; i++)
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

/* Where nodes have no wire the kernel counts at their sockets, and only what it dropped. */
static void record_drops(struct engine *e, struct node *n, const struct wire_counters *c) {
    struct json_writer *w = engine_record(e, SOURCE_KERNEL, "socket-drops");
    json_put_string(w, "node", node_plan(n)->name);
    json_put_i64(w, "dropped_in", (int64_t)c->dropped_in);
    json_put_i64(w, "dropped_out", (int64_t)c->dropped_out);
    put_frames(e, w, "cut_to", c->cut_to);
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
    if (has_any(c->delayed_to))
        put_frames(e, w, "delayed_to", c->delayed_to);
    engine_recorded(e);
    hang_counters(e, n, c);
}

void counting_end(struct engine *e) {
    if (e->phase != ENGINE_ENDING)
        return;
    loop_timer_off(e->end_timer);
    looks_take(e, "job-end", 0);
    if (!pause_begin(e))
        engine_take_down(e);
}

/* Those that a fault has asked for come first. */
void counting_counted(void *arg) {
    struct engine *e = arg;
    if (--e->counts == 0 && e->last_count)
        counting_end(e);
}
