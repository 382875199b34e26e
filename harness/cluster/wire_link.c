/* The harness's end of the connection to the wire: requests go out, answers and counters come
 * back. */
#include "harness/cluster/parts.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The wire answers within microseconds; a machine that is out of breath is given some seconds. */
static const int64_t answer_wait_ns = 5000000000;

struct wire_link_queued {
    struct list link;
    struct message message;
};

/* ---- requests ---- */

struct wire_link_request {
    struct buf text;
    struct json_writer w;
    int64_t id;
};

static void request_begin(struct wire_link *l, struct wire_link_request *r, const char *op) {
    *r = (struct wire_link_request){.id = ++l->last_id};
    r->w.out = &r->text;
    json_object(&r->w, NULL);
    json_put_i64(&r->w, "id", r->id);
    json_put_string(&r->w, "op", op);
}

static int request_send(struct wire_link *l, struct wire_link_request *r, const int *fds, size_t n,
                        struct err *err) {
    json_end_object(&r->w);
    int code = l->fd < 0 ? err_say(err, -EPIPE, "it is not running")
                         : channel_send(l->fd, &r->text, fds, n, err);
    buf_fini(&r->text);
    if (code)
        err_wrap(err, "the wire: ");
    return code;
}

/* ---- what it says ---- */

static void take_frames(const struct json *list, uint64_t ret[CLUSTER_NODES_MAX]) {
    json_each(it, list) {
        int64_t to = json_get_i64(it, "to", -1);
        if (to >= 0 && to < CLUSTER_NODES_MAX)
            ret[to] = (uint64_t)json_get_i64(it, "frames", 0);
    }
}

static void on_counters(struct cluster *c, const struct json *ports) {
    json_each(it, ports) {
        int64_t port = json_get_i64(it, "port", -1);
        if (port < 0 || port >= (int64_t)c->nodes_n)
            continue;
        struct wire_counters w = {
            .frames_in = (uint64_t)json_get_i64(it, "frames_in", 0),
            .bytes_in = (uint64_t)json_get_i64(it, "bytes_in", 0),
            .frames_out = (uint64_t)json_get_i64(it, "frames_out", 0),
            .bytes_out = (uint64_t)json_get_i64(it, "bytes_out", 0),
            .dropped_in = (uint64_t)json_get_i64(it, "dropped_in", 0),
            .dropped_out = (uint64_t)json_get_i64(it, "dropped_out", 0),
            .data_bytes_out = (uint64_t)json_get_i64(it, "data_bytes_out", 0),
            .lost = (uint64_t)json_get_i64(it, "lost", 0),
        };
        take_frames(json_get(it, "cut"), w.cut_to);
        for (size_t i = 0; i < PLANES_N; i++)
            take_frames(json_get(it, plane_names[i]), w.passed_to[i]);
        take_frames(json_get(it, "bytes"), w.bytes_to);
        for (size_t i = 0; i < DEEDS_N; i++)
            take_frames(json_get(it, impairment_deed_keys[i]), w.done_to[i]);
        if (c->cb.counters)
            c->cb.counters(c->arg, c->nodes[port], &w);
    }
    if (c->cb.counted)
        c->cb.counted(c->arg);
}

/* Nobody needs it to wait any more, or nobody asks. */
static void on_request(struct cluster *c, struct node *n, const struct json *j) {
    int64_t to = json_get_i64(j, "to", -1), operation = json_get_i64(j, "operation", -1);
    const struct store_request r = {.from = n,
                                    .to = to >= 0 && to < (int64_t)c->nodes_n ? c->nodes[to] : NULL,
                                    .operation = (enum store_operation)operation,
                                    .waits = (uint64_t)json_get_i64(j, "waits", 0)};
    bool known = r.to && operation >= 0 && operation < STORE_OPERATIONS_N && c->cb.asked;
    if ((!known || !c->cb.asked(c->arg, &r)) && r.waits)
        cluster_pass_request(c, r.waits);
}

static void handle(struct cluster *c, const struct json *j) {
    const char *op = json_get_string(j, "op", ""), *error = json_get_string(j, "error", NULL);
    int64_t port = json_get_i64(j, "port", -1);
    struct node *n = port >= 0 && port < (int64_t)c->nodes_n ? c->nodes[port] : NULL;
    if (n && str_eq(op, "port")) {
        node_wired(n, error);
    } else if (n && str_eq(op, "gone")) {
        n->wired = false;
        cluster_settle(c);
    } else if (str_eq(op, "healed")) {
        c->wire.told = c->wire.held = 0;
        cluster_healed(c, "the wire", j);
    } else if (n && str_eq(op, "request")) {
        on_request(c, n, j);
    } else if (str_eq(op, "count")) {
        on_counters(c, json_get(j, "ports"));
    }
}

/* What came while an answer was waited for: older than all that can still be read. */
static void on_queue(void *arg, int64_t now_ns) {
    struct cluster *c = arg;
    while (!list_empty(&c->wire.queue)) {
        struct wire_link_queued *q = list_entry(c->wire.queue.next, struct wire_link_queued, link);
        list_remove(&q->link);
        handle(c, q->message.json);
        message_fini(&q->message);
        free(q);
    }
}

static void on_message(void *arg, int fd, int what) {
    struct cluster *c = arg;
    struct message m;
    int r = 0;
    on_queue(c, 0);
    while (c->wire.fd == fd && (r = channel_receive(fd, &m, NULL)) > 0) {
        handle(c, m.json);
        message_fini(&m);
        on_queue(c, 0); /* what came while that was handled is older than what comes next */
    }
    if (r < 0 && c->wire.on_message) /* its end is told by its pidfd */
        loop_fd_set(c->wire.on_message, 0);
}

static void enqueue(struct wire_link *l, const struct message *m) {
    struct wire_link_queued *q = mem_new(struct wire_link_queued);
    q->message = *m;
    list_append(&l->queue, &q->link);
    loop_timer_at(l->on_queue, 0);
}

/* Waits for the answer with this id; what else comes meanwhile is handled on the next turn. */
static int wait_answer(struct wire_link *l, int64_t id, struct err *err) {
    int64_t until = clock_monotonic_ns() + answer_wait_ns;
    for (;;) {
        struct message m;
        int r = channel_receive(l->fd, &m, err);
        if (r < 0)
            return r;
        if (r > 0 && json_get_i64(m.json, "id", 0) != id) {
            enqueue(l, &m);
            continue;
        }
        if (r > 0) {
            const char *error = json_get_string(m.json, "error", NULL);
            r = error ? err_say(err, -EIO, "%s", error) : 0;
            message_fini(&m);
            return r;
        }
        int64_t left_ms = (until - clock_monotonic_ns()) / 1000000;
        struct pollfd p = {.fd = l->fd, .events = POLLIN};
        if (left_ms <= 0 || poll(&p, 1, (int)left_ms) == 0)
            return err_say(err, -ETIME, "it does not answer");
    }
}

/* Sends a request and waits until it is in force. */
static int request_settle(struct cluster *c, struct wire_link_request *r, struct err *err) {
    int code = request_send(&c->wire, r, NULL, 0, err);
    if (code)
        return code;
    code = wait_answer(&c->wire, r->id, err);
    if (code)
        err_wrap(err, "the wire: ");
    return code;
}

/* ---- its life ---- */

static void on_end(void *arg, int fd, int what) {
    struct cluster *c = arg;
    struct wire_link *l = &c->wire;
    int status = 0;
    char text[64];
    on_message(c, l->fd, LOOP_READ);
    process_reap(&l->process, 0, &status);
    l->on_end = loop_source_free(l->on_end);
    l->on_message = loop_source_free(l->on_message);
    file_close(&l->fd);
    process_close(&l->process);
    for (size_t i = 0; i < c->nodes_n; i++)
        c->nodes[i]->wired = false;
    if (c->going_down) {
        cluster_settle(c);
        return;
    }
    struct err err;
    err_say(&err, -EPIPE, "the wire ended by itself: %s",
            process_status_text(status, text, sizeof(text)));
    cluster_failed(c, &err);
}

/* The name server: its address, and the names of all nodes in the order of their ports. */
static void put_resolver(const struct cluster *c, struct json_writer *w) {
    json_object(w, "resolver");
    json_put_string(w, "addr", PLAN_RESOLVER);
    json_put_string(w, "mac", PLAN_RESOLVER_MAC);
    json_array(w, "names");
    for (size_t i = 0; i < c->nodes_n; i++) {
        json_object(w, NULL);
        json_put_string(w, "name", c->nodes[i]->plan->name);
        json_put_string(w, "addr", c->nodes[i]->plan->addr);
        json_end_object(w);
    }
    json_end_array(w);
    json_end_object(w);
}

/* pcap/n0.pcapng of the run directory, of every node. */
static int capture_all(struct cluster *c, struct err *err) {
    struct wire_link_request r;
    int code = folder_make(c->run, "pcap", 0777, err);
    for (size_t i = 0; i < c->nodes_n && code == 0; i++) {
        char *name = mem_printf("pcap/%s.pcapng", c->nodes[i]->plan->name);
        FILE_CLOSE int fd = folder_create(c->run, name, err);
        free(name);
        if (fd < 0)
            return fd;
        request_begin(&c->wire, &r, "capture");
        json_put_i64(&r.w, "port", c->nodes[i]->port);
        json_put_string(&r.w, "name", c->nodes[i]->plan->name);
        code = request_send(&c->wire, &r, &fd, 1, err);
    }
    return code;
}

int wire_link_start(struct cluster *c, struct err *err) {
    struct wire_link *l = &c->wire;
    struct wire_link_request r;
    list_init(&l->queue);
    l->on_queue = loop_timer(c->loop, on_queue, c);
    int code = cluster_spawn("wire", CLONE_NEWNET, &l->process, &l->fd, err);
    if (code)
        return code;
    l->on_message = loop_fd(c->loop, l->fd, LOOP_READ, on_message, c);
    l->on_end = loop_fd(c->loop, l->process.pidfd, LOOP_READ, on_end, c);
    request_begin(l, &r, "setup");
    json_put_i64(&r.w, "dead_man", c->plan->scenario->limits.dead_man_ns);
    enum store_kind store = c->plan->scenario->cluster.store;
    c->sorting.store_port = PLAN_STORE_PORT;
    if (store == STORE_ETCD || store == STORE_ETCD_3)
        c->sorting.store_peer_port = PLAN_STORE_PORT + 1;
    json_put_i64(&r.w, "store_port", c->sorting.store_port);
    json_put_i64(&r.w, "store_peer_port", c->sorting.store_peer_port);
    /* For tests, and for whoever suspects the queue. */
    json_put_bool(&r.w, "ring", str_eq(getenv("RANKQUAKE_WIRE"), "ring"));
    if (plan_needs(c->plan) & FAULT_NEEDS_NAMES)
        put_resolver(c, &r.w);
    code = request_send(l, &r, NULL, 0, err);
    return code || !c->captures ? code : capture_all(c, err);
}

void wire_link_end(struct cluster *c) {
    c->wire.on_message = loop_source_free(c->wire.on_message);
    file_close(&c->wire.fd);
}

struct wire_link *wire_link_fini(struct wire_link *l) {
    l->on_message = loop_source_free(l->on_message);
    l->on_end = loop_source_free(l->on_end);
    l->on_queue = loop_source_free(l->on_queue);
    while (l->queue.next && !list_empty(&l->queue)) {
        struct wire_link_queued *q = list_entry(l->queue.next, struct wire_link_queued, link);
        list_remove(&q->link);
        message_fini(&q->message);
        free(q);
    }
    file_close(&l->fd);
    if (l->process.pid) {
        process_signal(&l->process, SIGKILL);
        process_reap(&l->process, answer_wait_ns, NULL);
        process_close(&l->process);
    }
    return NULL;
}

/* ---- its words ---- */

int wire_link_add_port(struct cluster *c, struct node *n, int netns, struct err *err) {
    struct wire_link_request r;
    char mac[24];
    const unsigned char *b = n->plan->mac;
    snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4], b[5]);
    request_begin(&c->wire, &r, "port");
    json_put_i64(&r.w, "port", n->port);
    json_put_string(&r.w, "mac", mac);
    return request_send(&c->wire, &r, &netns, 1, err);
}

int wire_link_silence(struct cluster *c, struct node *n, bool on, struct err *err) {
    struct wire_link_request r;
    request_begin(&c->wire, &r, "silence");
    json_put_i64(&r.w, "port", n->port);
    json_put_bool(&r.w, "on", on);
    return request_settle(c, &r, err);
}

static void put_partition(const struct cluster *c, struct json_writer *w,
                          const struct partition *p) {
    json_object(w, NULL);
    struct impairment how = p->how;
    json_put_i64(w, "id", p->id);
    json_put_bool(w, "cut", p->cut);
    for (size_t i = 0; i < IMPAIRMENT_NUMBERS_N; i++)
        json_put_i64(w, impairment_names[i], *impairment_number(&how, i));
    json_array(w, "groups");
    for (size_t i = 0; i < c->nodes_n && i < CLUSTER_NODES_MAX; i++)
        json_put_i64(w, NULL, p->group[i]);
    json_end_array(w);
    json_end_object(w);
}

int wire_link_partitions(struct cluster *c, struct err *err) {
    struct wire_link_request r;
    request_begin(&c->wire, &r, "partitions");
    json_array(&r.w, "list");
    list_each(it, &c->partitions) put_partition(c, &r.w, list_entry(it, struct partition, link));
    json_end_array(&r.w);
    return request_settle(c, &r, err);
}

void wire_link_bootstrap(struct cluster *c, uint16_t tcp_port) {
    struct wire_link_request r;
    wire_rules_bootstrap(&c->sorting, tcp_port);
    request_begin(&c->wire, &r, "bootstrap");
    json_put_i64(&r.w, "tcp_port", tcp_port);
    request_send(&c->wire, &r, NULL, 0, NULL);
}

void wire_link_beat(struct cluster *c) {
    struct wire_link_request r;
    if (c->wire.fd < 0)
        return;
    request_begin(&c->wire, &r, "beat");
    request_send(&c->wire, &r, NULL, 0, NULL);
}

void wire_link_count(struct cluster *c) {
    struct wire_link_request r;
    request_begin(&c->wire, &r, "count");
    if (request_send(&c->wire, &r, NULL, 0, NULL) != 0 && c->cb.counted)
        c->cb.counted(c->arg);
}

void cluster_watch_store(struct cluster *c, unsigned told, unsigned held) {
    struct wire_link_request r;
    struct err err;
    if (c->wire.told == told && c->wire.held == held)
        return;
    c->wire.told = told;
    c->wire.held = held;
    request_begin(&c->wire, &r, "watch");
    json_put_i64(&r.w, "told", told);
    json_put_i64(&r.w, "held", held);
    request_settle(c, &r, &err); /* a wire that has ended is told by its pidfd */
}

void cluster_pass_request(struct cluster *c, uint64_t waits) {
    struct wire_link_request r;
    request_begin(&c->wire, &r, "pass");
    json_put_i64(&r.w, "waits", (int64_t)waits);
    request_send(&c->wire, &r, NULL, 0, NULL);
}
