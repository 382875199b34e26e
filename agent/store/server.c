#include "agent/store/server.h"

#include "agent/base/arena.h"
#include "agent/base/json.h"
#include "agent/base/list.h"
#include "agent/core/kv.h"
#include "agent/store/answer.h"
#include "agent/store/gateway.h"
#include "agent/store/ledger.h"
#include "agent/store/lifelines.h"
#include "agent/store/metrics.h"
#include "agent/store/quota.h"
#include "agent/store/stream.h"
#include "agent/store/token.h"
#include "agent/sys/clock.h"
#include "agent/sys/line.h"
#include "agent/sys/munge.h"
#include "agent/sys/tcp.h"
#include "agent/tls/tls.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BACKLOG = 4096,     /* a whole cluster starts at once */
    BODY_MAX = 2 << 20, /* etcd's own limit on a request is 1.5 MB */
    HEADERS_MAX = 16 << 10,
    IDLE_S = 300,   /* a connection without a request; streams are watched by the kernel */
    SILENCE_S = 20, /* a client whose host vanished */
    HANDSHAKE_HELD = 32 << 10, /* OpenSSL's: 11 kB while nothing has come, then up to 48 */
    REASONS_MAX = 8,
    TLS_HANDSHAKE = 0x16, /* RFC 8446, 5.1 */
};

const struct server_limits SERVER_LIMITS = {
    .held_max = 256 << 20, .kept_max = QUOTA_MAX, .request_ns = 30000000000};

static const int64_t ACCEPT_PAUSE_NS = 100000000;

/* Of this process. */
static struct list servers = {&servers, &servers};

struct server {
    struct list node;
    struct loop *loop;
    struct kv *kv;
    struct evhttp *http;
    struct streams *streams;
    struct lifelines *lifelines;
    struct ledger *ledger;
    struct quota quota;
    struct loop_source *fan_out; /* due when something was written: after the answer to it */
    struct loop_source *leases;
    struct evconnlistener *listener;
    struct loop_source *accept_again; /* due when the listener was paused */
    struct metrics metrics;
    uint16_t port;
    const char *token;       /* NULL: everybody is answered */
    char drawn[TOKEN_DRAWN]; /* the token, where it is the store's own */
    struct buf sealed;       /* the same for our user; empty: it is told to nobody */
    bool loopback;           /* no other host reaches it */
    bool stranger_told, crowd_told;
    struct tls *tls; /* NULL: connections are plain */
    struct tls_watch tls_watch;
    struct buf tls_wanted;         /* the answer to plain HTTP */
    bool tls_admits;               /* only who has a certificate of the right authority comes in */
    const char *told[REASONS_MAX]; /* of handshakes that failed */
};

/* ---- answering ---- */

static const char *path_of(struct evhttp_request *req) {
    const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));
    return path ? path : "";
}

static void send_text(struct evhttp_request *req, int status, const struct buf *body,
                      const char *type) {
    struct evbuffer *out = evbuffer_new();
    if (!out)
        abort();
    evbuffer_add(out, body->data, body->len);
    evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type", type);
    evhttp_send_reply(req, status, NULL, out);
    evbuffer_free(out);
}

static void send_answer(struct server *s, struct evhttp_request *req, struct answer *a) {
    metrics_count(&s->metrics, path_of(req), a->status);
    send_text(req, a->status, &a->body, "application/json");
    buf_fini(&a->body);
}

/* Ends the leases that are due, and tells the watchers.
 *
 * The timer is served on the next turn, after the sockets that are writable: so the writer has its
 * answer before the watchers are told, and several writes of one turn are told together. */
static void state_changed(struct server *s) {
    int64_t now_ns = clock_monotonic_ns(), at_ns = kv_lease_expire(s->kv, now_ns);
    loop_timer_at(s->fan_out, now_ns);
    if (at_ns < INT64_MAX)
        loop_timer_at(s->leases, at_ns);
    else
        loop_timer_off(s->leases);
}

static void on_fan_out(void *arg, int64_t now_ns) {
    (void)now_ns;
    struct server *s = arg;
    streams_send(s->streams);
}

static void on_leases(void *arg, int64_t now_ns) {
    (void)now_ns;
    state_changed(arg);
}

/* The request's body in one piece; it lives as long as the request. */
static const char *request_body(struct evhttp_request *req, size_t *ret_n) {
    struct evbuffer *in = evhttp_request_get_input_buffer(req);
    *ret_n = evbuffer_get_length(in);
    return *ret_n ? (const char *)evbuffer_pullup(in, -1) : "";
}

/* Of each request, first of all. False: it has been answered already. */
static bool admit(struct server *s, struct evhttp_request *req) {
    ledger_whole(s->ledger, evhttp_connection_get_bufferevent(evhttp_request_get_connection(req)));
    struct answer answer = {.status = 200};
    const char *shown = evhttp_find_header(evhttp_request_get_input_headers(req), "Authorization");
    if (!s->token || token_shown(shown, s->token))
        return true;
    answer_refuse(&answer, ANSWER_STRANGER,
                  shown ? "the token is not the one that this store was given"
                        : "this store wants a token: --rdzv-conf token_file=FILE, or the variable "
                          "RANKRUN_STORE_TOKEN");
    send_answer(s, req, &answer);
    return false;
}

/* Where etcd takes a password a store of ours that has a token of its own tells it to our user on
 * other hosts, sealed (agent/sys/munge.h): anybody may ask. */
static void on_authenticate(struct evhttp_request *req, void *arg) {
    struct server *s = arg;
    struct answer answer = {.status = 200};
    struct json_writer w = {.out = &answer.body};
    ledger_whole(s->ledger, evhttp_connection_get_bufferevent(evhttp_request_get_connection(req)));
    if (evhttp_request_get_command(req) != EVHTTP_REQ_POST) {
        answer_refuse(&answer, ANSWER_METHOD, "Method Not Allowed");
    } else {
        json_object(&w, NULL);
        json_put_string(&w, "munge", buf_str(&s->sealed));
        json_end_object(&w);
    }
    send_answer(s, req, &answer);
}

static void on_watch(struct evhttp_request *req, void *arg) {
    struct server *s = arg;
    if (!admit(s, req))
        return;
    struct arena arena = {0};
    struct answer answer = {.status = 200};
    struct gateway_watch watch;
    struct err err = {0};
    size_t n;
    const char *body = request_body(req, &n);
    if (gateway_take_watch(&arena, body, n, &watch, &err) == 0) {
        metrics_count(&s->metrics, path_of(req), answer.status);
        streams_open(s->streams, req, &watch);
        loop_timer_at(s->fan_out, clock_monotonic_ns()); /* it may have asked for the past */
    } else {
        answer_refuse(&answer, ANSWER_INVALID, err.msg);
        send_answer(s, req, &answer);
    }
    arena_fini(&arena);
}

static void on_lifeline(struct evhttp_request *req, void *arg) {
    struct server *s = arg;
    if (!admit(s, req))
        return;
    struct answer answer = {.status = 200};
    struct err err = {0};
    size_t n;
    const char *body = request_body(req, &n);
    if (s->tls)
        err_say(&err, -EINVAL, "lifeline: nobody signs the end of a connection: none over TLS");
    else if (lifelines_take(s->lifelines, req, body, n, &err) == 0) {
        metrics_count(&s->metrics, LIFELINE_PATH, answer.status);
        return; /* it is never answered */
    }
    answer_refuse(&answer, ANSWER_INVALID, err.msg);
    send_answer(s, req, &answer);
}

static void on_metrics(struct evhttp_request *req, void *arg) {
    struct server *s = arg;
    if (!admit(s, req))
        return;
    struct buf text = {0};
    struct metrics_now now = {.connections = tcp_count_connections(s->port),
                              .watches = streams_count(s->streams),
                              .lifelines = lifelines_count(s->lifelines),
                              .held = ledger_held(s->ledger),
                              .full = s->quota.full};
    struct answer answer = {.status = 200};
    if (evhttp_request_get_command(req) != EVHTTP_REQ_GET) {
        answer_refuse(&answer, ANSWER_METHOD, "Method Not Allowed");
        send_answer(s, req, &answer);
        return;
    }
    metrics_count(&s->metrics, METRICS_PATH, answer.status);
    metrics_put(&text, &s->metrics, &now, s->kv);
    send_text(req, answer.status, &text, METRICS_TYPE);
    buf_fini(&text);
}

static void on_certified(void *arg) {
    state_changed(arg);
}

static void on_request(struct evhttp_request *req, void *arg) {
    struct server *s = arg;
    if (!admit(s, req))
        return;
    struct answer answer = {.status = 200};
    size_t n;
    const char *body = request_body(req, &n);
    int64_t now_ns = clock_monotonic_ns();
    if (evhttp_request_get_command(req) != EVHTTP_REQ_POST)
        answer_refuse(&answer, ANSWER_METHOD, "Method Not Allowed");
    else
        answer_request(&answer, s->kv, path_of(req), body, n, now_ns,
                       quota_is_full(&s->quota, s->kv, now_ns));
    if (answer.adds && answer.status == 200)
        quota_wrote(&s->quota, s->kv, n);
    if (answer.takes && answer.status == 200)
        quota_deleted(&s->quota);
    send_answer(s, req, &answer);
    state_changed(s);
}

/* ---- connections ---- */

/* HTTP begins with a letter; a TCPStore client (torchrun's c10d backend) with the number of a query
 * and a binary length; TLS with the type of its first record. It gets evhttp's 400 and its user a
 * line that says what to do. */
static void on_first_bytes(struct evbuffer *in, const struct evbuffer_cb_info *info, void *arg) {
    struct server *s = arg;
    unsigned char first = 'P';
    s->metrics.received += info->n_added;
    if (!info->n_added || info->orig_size || s->stranger_told)
        return;
    evbuffer_copyout(in, &first, 1);
    if (first >= ' ')
        return;
    s->stranger_told = true;
    if (first == TLS_HANDSHAKE)
        line_say(LINE_WARNING, "store",
                 "a client that speaks TLS knocked at port %u of the store, which speaks none "
                 "without a certificate: --rdzv-conf store_cert=FILE,store_key=FILE of the agent "
                 "that serves it, or rankrun store --cert FILE --key FILE",
                 s->port);
    else
        line_say(
            LINE_WARNING, "store",
            "a client that speaks no HTTP knocked at port %u of the store, most likely torchrun "
            "with --rdzv-backend=c10d: it cannot join rankrun agents",
            s->port);
}

/* What leaves it was taken by the kernel. */
static void on_sent(struct evbuffer *out, const struct evbuffer_cb_info *info, void *arg) {
    struct server *s = arg;
    (void)out;
    s->metrics.sent += info->n_deleted;
}

static void on_handshake_done(void *arg, struct bufferevent *b) {
    struct server *s = arg;
    ledger_whole(s->ledger, b);
}

static void on_gone(void *arg, struct bufferevent *b) {
    struct server *s = arg;
    ledger_close(s->ledger, b);
}

/* Each reason once: clients come again, and anybody can come. */
static void on_handshake_failed(void *arg, struct bufferevent *b, const char *why) {
    struct server *s = arg;
    char own[TCP_ENDS_MAX], peer[TCP_ENDS_MAX] = "a client";
    int n = 0;
    s->metrics.handshakes_failed++;
    while (n < REASONS_MAX && s->told[n] && s->told[n] != why)
        n++;
    if (n == REASONS_MAX || s->told[n])
        return;
    s->told[n] = why;
    tcp_ends(bufferevent_getfd(b), own, peer);
    line_say(LINE_WARNING, "store", "store: %s is not let in at port %u, which speaks TLS: %s",
             peer, s->port, why);
}

/* A handshake is held as a request is that has not come whole: in bytes and in time. In place of a
 * connection that is not there evhttp would make a plain one. */
static struct bufferevent *on_connection(struct event_base *base, void *arg) {
    struct server *s = arg;
    struct bufferevent *b = s->tls ? tls_accept(s->tls, base, &s->tls_watch)
                                   : bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (!b)
        abort();
    s->metrics.accepted++;
    ledger_open(s->ledger, b);
    if (s->tls)
        ledger_begin(s->ledger, b, HANDSHAKE_HELD);
    evbuffer_add_cb(bufferevent_get_input(b), on_first_bytes, s);
    evbuffer_add_cb(bufferevent_get_output(b), on_sent, s);
    return b;
}

/* The listener's argument is evhttp's. */
static struct server *find_server(const struct evconnlistener *listener) {
    struct list *it = servers.next;
    while (list_entry(it, struct server, node)->listener != listener)
        it = it->next;
    return list_entry(it, struct server, node);
}

/* No more files: whoever waits stays in the backlog. Without a pause the listener would be ready
 * again at once, for ever, and those who are in would wait too. */
static void on_accept_failed(struct evconnlistener *listener, void *arg) {
    struct server *s = find_server(listener);
    (void)arg; /* evhttp's own */
    if (!s->crowd_told)
        line_say(LINE_WARNING, "store",
                 "store: no more connections to port %u can be taken for now: %s (ulimit -n)",
                 s->port, strerror(errno));
    s->crowd_told = true;
    evconnlistener_disable(listener);
    loop_timer_at(s->accept_again, clock_monotonic_ns() + ACCEPT_PAUSE_NS);
}

static void on_accept_again(void *arg, int64_t now_ns) {
    struct server *s = arg;
    (void)now_ns;
    evconnlistener_enable(s->listener);
}

/* ---- the whole ---- */

static struct evhttp *http_server_new(struct server *s) {
    struct evhttp *h = evhttp_new(loop_base(s->loop));
    if (!h)
        abort();
    evhttp_set_max_body_size(h, BODY_MAX);
    evhttp_set_max_headers_size(h, HEADERS_MAX);
    evhttp_set_timeout(h, IDLE_S);
    evhttp_set_bevcb(h, on_connection, s);
    evhttp_set_allowed_methods(h, EVHTTP_REQ_POST | EVHTTP_REQ_GET | EVHTTP_REQ_PUT);
    evhttp_set_cb(h, "/v3/watch", on_watch, s);
    evhttp_set_cb(h, "/v3/auth/authenticate", on_authenticate, s);
    evhttp_set_cb(h, LIFELINE_PATH, on_lifeline, s);
    evhttp_set_cb(h, METRICS_PATH, on_metrics, s);
    evhttp_set_gencb(h, on_request, s);
    return h;
}

struct server *server_new(struct loop *l, struct kv *kv, const char *host, uint16_t port,
                          struct err *err) {
    int fd = -1;
    if (tcp_listen(host, port, BACKLOG, &fd, &port, err) < 0)
        return NULL;
    tcp_bound_silence(fd, SILENCE_S); /* what is accepted inherits it */
    struct server *s = calloc(1, sizeof(*s));
    if (!s)
        abort();
    *s = (struct server){.loop = l, .kv = kv, .port = port, .loopback = tcp_is_loopback(fd)};
    list_append(&servers, &s->node);
    s->streams = streams_new(kv);
    s->lifelines = lifelines_new(l, kv, on_certified, s);
    s->ledger = ledger_new(l);
    server_limit(s, &SERVER_LIMITS);
    s->fan_out = loop_timer(l, on_fan_out, s);
    s->leases = loop_timer(l, on_leases, s);
    s->http = http_server_new(s);
    s->accept_again = loop_timer(l, on_accept_again, s);
    struct evhttp_bound_socket *bound = evhttp_accept_socket_with_handle(s->http, fd);
    if (bound) {
        s->listener = evhttp_bound_socket_get_listener(bound);
        evconnlistener_set_error_cb(s->listener, on_accept_failed);
        return s;
    }
    close(fd);
    server_free(s);
    err_say(err, -EIO, "libevent did not take the listening socket of %s:%u", host, port);
    return NULL;
}

struct server *server_free(struct server *s) {
    if (!s)
        return NULL;
    lifelines_free(s->lifelines);
    streams_free(s->streams);
    evhttp_free(s->http);
    tls_free(s->tls);
    ledger_free(s->ledger);
    buf_fini(&s->tls_wanted);
    buf_fini(&s->sealed);
    loop_source_free(s->fan_out);
    loop_source_free(s->leases);
    loop_source_free(s->accept_again);
    list_remove(&s->node);
    free(s);
    return NULL;
}

void server_limit(struct server *s, const struct server_limits *limits) {
    struct ledger_limits held = {.held_max = limits->held_max, .request_ns = limits->request_ns};
    ledger_set_limits(s->ledger, &held);
    s->quota.max = limits->kept_max;
}

void server_demand(struct server *s, const char *token) {
    s->token = token;
}

void server_draw_token(struct server *s) {
    token_draw(s->drawn);
    if (munge_seal(s->drawn, &s->sealed, NULL) == 0)
        server_demand(s, s->drawn);
}

/* Who speaks no TLS is told so in plain HTTP, as it reads nothing else. */
static void put_tls_wanted(struct buf *out) {
    struct answer a = {0};
    answer_refuse(&a, ANSWER_CONDITION,
                  "this store speaks TLS: https, --rdzv-conf protocol=https,cacert=FILE");
    buf_printf(out,
               "HTTP/1.1 426 Upgrade Required\r\nUpgrade: TLS/1.2\r\nConnection: close\r\n"
               "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
               a.body.len, buf_str(&a.body));
    buf_fini(&a.body);
}

void server_encrypt(struct server *s, struct tls *t, bool clients_certified) {
    s->tls = t;
    s->tls_admits = clients_certified;
    put_tls_wanted(&s->tls_wanted);
    s->tls_watch = (struct tls_watch){.gone = on_gone,
                                      .done = on_handshake_done,
                                      .failed = on_handshake_failed,
                                      .arg = s,
                                      .plain = buf_str(&s->tls_wanted)};
}

void server_warn(const struct server *s) {
    if (!s->token && !s->tls_admits && !s->loopback)
        line_say(LINE_WARNING, "store",
                 "store: without a token everybody who reaches port %u can read and change its "
                 "jobs; the variable RANKRUN_STORE_TOKEN, the same on all nodes, sets one",
                 s->port);
}

void server_changed(struct server *s) {
    state_changed(s);
}

uint16_t server_port(const struct server *s) {
    return s->port;
}

size_t server_lifelines(const struct server *s) {
    return lifelines_count(s->lifelines);
}

size_t server_held(const struct server *s) {
    return ledger_held(s->ledger);
}

size_t server_watches(const struct server *s) {
    return streams_count(s->streams);
}
