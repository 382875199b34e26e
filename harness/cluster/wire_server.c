#include "harness/cluster/wire_server.h"

#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/loop.h"
#include "faults/mechanism/wire.h"
#include "harness/carrier/channel.h"
#include "harness/cluster/dead_man.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

struct wire_service {
    struct loop *loop;
    struct wire *wire;
    int control;
    int ports_n;
    struct dead_man *heals;
    int64_t ahead_ns; /* of the time of day before the monotonic clock; 0: not read yet */
    struct buf out;
    struct json_writer w;
};

static void send_out(struct wire_service *s) {
    json_end_object(&s->w);
    if (channel_send(s->control, &s->out, NULL, 0, NULL) != 0)
        loop_stop(s->loop);
}

static void begin(struct wire_service *s, const char *op) {
    buf_clear(&s->out);
    s->w = (struct json_writer){.out = &s->out};
    json_object(&s->w, NULL);
    json_put_string(&s->w, "op", op);
}

static void on_gone(void *arg, int port) {
    struct wire_service *s = arg;
    begin(s, "gone");
    json_put_i64(&s->w, "port", port);
    send_out(s);
}

static int parse_mac(const char *text, unsigned char ret[6], struct err *err) {
    unsigned mac[6];
    if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4],
               &mac[5]) != 6)
        return err_say(err, -EINVAL, "\"%s\" is no address of a card", text);
    for (int i = 0; i < 6; i++)
        ret[i] = (unsigned char)mac[i];
    return 0;
}

static uint32_t address_of(const char *text) {
    struct in_addr a;
    return inet_pton(AF_INET, text, &a) == 1 ? ntohl(a.s_addr) : 0;
}

static int setup_resolver(struct wire_service *s, const struct json *j, struct err *err) {
    struct resolver *r = wire_resolver(s->wire);
    if (parse_mac(json_get_string(j, "mac", ""), r->mac, err) != 0)
        return -EINVAL;
    json_each(it, json_get(j, "names")) {
        if (r->n == RESOLVER_NAMES_MAX)
            break;
        str_copy(r->names[r->n].name, RESOLVER_NAME_MAX, json_get_string(it, "name", ""));
        r->names[r->n++].address = address_of(json_get_string(it, "addr", ""));
    }
    r->address = address_of(json_get_string(j, "addr", ""));
    return 0;
}

/* All frames pass again, as they are. A node that has lost its power stays silent. */
static void on_silence(void *arg, int64_t silent_ns) {
    struct wire_service *s = arg;
    wire_rules_clear(wire_rules(s->wire));
    wire_impair(s->wire, NULL, 0);
    wire_pass_all(s->wire);
    begin(s, "healed");
    json_put_i64(&s->w, "silent_ns", silent_ns);
    send_out(s);
}

static int do_setup(struct wire_service *s, struct message *m, struct err *err) {
    wire_rules(s->wire)->store_port = (uint16_t)json_get_i64(m->json, "store_port", 0);
    wire_rules(s->wire)->store_peer_port = (uint16_t)json_get_i64(m->json, "store_peer_port", 0);
    if (json_get_bool(m->json, "ring", false))
        wire_queue(s->wire, PACKET_QUEUE_RING);
    s->heals =
        dead_man_new(s->loop, s->control, json_get_i64(m->json, "dead_man", 0), on_silence, s);
    const struct json *resolver = json_get(m->json, "resolver");
    return resolver ? setup_resolver(s, resolver, err) : 0;
}

/* Returns the number of a port, or a -errno. */
static int get_port(const struct json *j, const char *key, struct err *err) {
    int64_t port = json_get_i64(j, key, -1);
    if (port < 0 || port >= WIRE_PORTS_MAX)
        return err_say(err, -ENOSPC, "the wire has %d ports: %s %d is none", WIRE_PORTS_MAX, key,
                       (int)port);
    return (int)port;
}

static int do_port(struct wire_service *s, struct message *m, struct err *err) {
    unsigned char bytes[6];
    int r, port = get_port(m->json, "port", err);
    if (port < 0)
        return port;
    if (m->fds[0] < 0)
        return err_say(err, -EINVAL, "a port needs a network namespace");
    if ((r = parse_mac(json_get_string(m->json, "mac", ""), bytes, err)))
        return r;
    r = wire_add_port(s->wire, port, bytes, m->fds[0], err);
    if (r)
        return r;
    wire_rules_silence(wire_rules(s->wire), port, false);
    if (port >= s->ports_n)
        s->ports_n = port + 1;
    return 0;
}

/* Two clocks are read once, so that times of the file and of the history differ by one number. */
static int do_capture(struct wire_service *s, struct message *m, struct err *err) {
    int port = get_port(m->json, "port", err);
    if (port < 0)
        return port;
    if (m->fds[0] < 0)
        return err_say(err, -EINVAL, "a capture needs a file");
    if (!s->ahead_ns)
        s->ahead_ns = clock_realtime_ns() - clock_monotonic_ns();
    wire_capture(s->wire, port,
                 capture_new(message_take_fd(m, 0), json_get_string(m->json, "name", ""),
                             s->ahead_ns, CAPTURE_MOST));
    return 0;
}

static int do_silence(struct wire_service *s, struct message *m, struct err *err) {
    int port = get_port(m->json, "port", err);
    if (port < 0)
        return port;
    wire_rules_silence(wire_rules(s->wire), port, json_get_bool(m->json, "on", true));
    return 0;
}

static void take_impaired(const struct json *j, struct impaired *ret) {
    int n = 0;
    *ret = (struct impaired){.id = json_get_i64(j, "id", 0)};
    for (int i = 0; i < WIRE_PORTS_MAX; i++)
        ret->group[i] = -1;
    json_each(g, json_get(j, "groups")) if (n < WIRE_PORTS_MAX) ret->group[n++] =
        (int)json_i64(g, -1);
    for (size_t i = 0; i < IMPAIRMENT_NUMBERS_N; i++)
        *impairment_number(&ret->how, i) = json_get_i64(j, impairment_names[i], 0);
}

/* All of them at once, so that between two frames either the old ones hold or the new. */
static int do_partitions(struct wire_service *s, struct message *m, struct err *err) {
    struct wire_rules *rules = wire_rules(s->wire);
    struct impaired list[IMPAIRER_MAX];
    size_t n = 0;
    json_each(it, json_get(m->json, "list")) n += !json_get_bool(it, "cut", false);
    if (n > IMPAIRER_MAX)
        return err_say(err, -ENOSPC, "%zu impairments at once, and %d are the most", n,
                       IMPAIRER_MAX);
    wire_rules_clear(rules);
    n = 0;
    json_each(it, json_get(m->json, "list")) {
        struct impaired one;
        take_impaired(it, &one);
        if (json_get_bool(it, "cut", false))
            wire_rules_partition(rules, one.group, &one.how);
        else
            list[n++] = one;
    }
    wire_impair(s->wire, list, n);
    return 0;
}

static int do_bootstrap(struct wire_service *s, struct message *m, struct err *err) {
    wire_rules_bootstrap(wire_rules(s->wire), (uint16_t)json_get_i64(m->json, "tcp_port", 0));
    return 0;
}

static void on_request(void *arg, const struct wire_request *r) {
    struct wire_service *s = arg;
    begin(s, "request");
    json_put_i64(&s->w, "port", r->from);
    json_put_i64(&s->w, "to", r->to);
    json_put_i64(&s->w, "operation", r->operation);
    json_put_i64(&s->w, "waits", (int64_t)r->id);
    send_out(s);
}

static int do_watch(struct wire_service *s, struct message *m, struct err *err) {
    wire_watch_store(s->wire, (unsigned)json_get_i64(m->json, "told", 0),
                     (unsigned)json_get_i64(m->json, "held", 0), on_request);
    return 0;
}

static int do_pass(struct wire_service *s, struct message *m, struct err *err) {
    wire_pass(s->wire, (uint64_t)json_get_i64(m->json, "waits", 0));
    return 0;
}

static void put_frames(struct wire_service *s, const char *key, const uint64_t *frames) {
    json_array(&s->w, key);
    for (int to = 0; to < s->ports_n; to++)
        if (frames[to]) {
            json_object(&s->w, NULL);
            json_put_i64(&s->w, "to", to);
            json_put_i64(&s->w, "frames", (int64_t)frames[to]);
            json_end_object(&s->w);
        }
    json_end_array(&s->w);
}

static void put_counters(struct wire_service *s, int port) {
    struct wire_port_counters c = wire_count(s->wire, port);
    json_object(&s->w, NULL);
    json_put_i64(&s->w, "port", port);
    json_put_i64(&s->w, "frames_in", (int64_t)c.frames_in);
    json_put_i64(&s->w, "bytes_in", (int64_t)c.bytes_in);
    json_put_i64(&s->w, "frames_out", (int64_t)c.frames_out);
    json_put_i64(&s->w, "bytes_out", (int64_t)c.bytes_out);
    json_put_i64(&s->w, "dropped_in", (int64_t)c.dropped_in);
    json_put_i64(&s->w, "dropped_out", (int64_t)c.dropped_out);
    json_put_i64(&s->w, "data_bytes_out", (int64_t)c.data_bytes_out);
    json_put_i64(&s->w, "lost", (int64_t)c.lost);
    put_frames(s, "cut", c.cut_to);
    for (size_t i = 0; i < PLANES_N; i++)
        put_frames(s, plane_names[i], c.passed_to[i]);
    put_frames(s, "bytes", c.bytes_to);
    for (size_t i = 0; i < DEEDS_N; i++)
        put_frames(s, impairment_deed_keys[i], c.done_to[i]);
    json_end_object(&s->w);
}

static void answer(struct wire_service *s, struct message *m, const char *op, const char *error) {
    begin(s, op);
    json_put_i64(&s->w, "id", json_get_i64(m->json, "id", 0));
    json_put_i64(&s->w, "port", json_get_i64(m->json, "port", -1));
    json_put_string(&s->w, "error", error);
    if (str_eq(op, "count")) {
        json_array(&s->w, "ports");
        for (int i = 0; i < s->ports_n; i++)
            put_counters(s, i);
        json_end_array(&s->w);
    }
    send_out(s);
}

static int do_count(struct wire_service *s, struct message *m, struct err *err) {
    wire_flush(s->wire);
    return 0;
}

static void handle(struct wire_service *s, struct message *m) {
    static const struct {
        const char *op;
        int (*fn)(struct wire_service *s, struct message *m, struct err *err);
    } ops[] = {{"capture", do_capture}, {"setup", do_setup},           {"port", do_port},
               {"silence", do_silence}, {"partitions", do_partitions}, {"bootstrap", do_bootstrap},
               {"count", do_count},     {"watch", do_watch},           {"pass", do_pass}};
    const char *op = json_get_string(m->json, "op", "");
    struct err err;
    dead_man_heard(s->heals);
    if (str_eq(op, "beat"))
        return;
    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
        if (!str_eq(op, ops[i].op))
            continue;
        int r = ops[i].fn(s, m, &err);
        answer(s, m, op, r ? err.msg : NULL);
        return;
    }
    answer(s, m, op, "the wire knows no such request");
}

static void on_message(void *arg, int fd, int what) {
    struct wire_service *s = arg;
    struct message m;
    int r;
    while ((r = channel_receive(fd, &m, NULL)) > 0) {
        handle(s, &m);
        message_fini(&m);
    }
    if (r < 0)
        loop_stop(s->loop);
}

int wire_server_run(int control, struct err *err) {
    struct wire_service s = {.control = control};
    s.loop = loop_new(err);
    if (!s.loop)
        return err->code;
    s.wire = wire_new(s.loop, on_gone, &s);
    loop_fd(s.loop, control, LOOP_READ, on_message, &s);
    int r = loop_run(s.loop, err);
    wire_free(s.wire);
    dead_man_free(s.heals);
    buf_fini(&s.out);
    loop_free(s.loop);
    return r;
}
