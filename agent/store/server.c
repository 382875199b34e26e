#include "agent/store/server_state.h"

#include "base/arena.h"
#include "base/json.h"
#include "base/mem.h"
#include "agent/core/kv.h"
#include "agent/store/answer.h"
#include "agent/store/limits/bounds.h"
#include "agent/store/limits/crowd.h"
#include "agent/store/limits/flow.h"
#include "agent/store/gateway.h"
#include "agent/store/limits/ledger.h"
#include "agent/store/lifelines.h"
#include "agent/store/metrics.h"
#include "agent/store/limits/page.h"
#include "agent/store/quota.h"
#include "agent/store/reply.h"
#include "agent/store/stream.h"
#include "agent/store/token.h"
#include "base/sys/clock.h"
#include "base/sys/line.h"
#include "base/sys/munge.h"
#include "base/sys/tcp.h"
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
    IDLE_S = 300,        /* a connection without a request; streams are watched by the kernel */
    SILENCE_S = 20,      /* a client whose host vanished */
    SHOWN_MAX = 1 << 20, /* keys that answers to others than agents show at once */
};

static const int64_t REQUEST_NS = 30000000000;

/* ---- answering ---- */

static const char *path_of(struct evhttp_request *req) {
    const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));
    return path ? path : "";
}

static void send_answer(struct server *s, struct evhttp_request *req, struct answer *a) {
    metrics_count(&s->metrics, path_of(req), a->status);
    reply_send(s->replies, req, a);
}

static void refuse(struct server *s, struct evhttp_request *req, enum answer_code code,
                   const char *why) {
    struct answer answer = {0};
    answer_refuse(&answer, code, why);
    send_answer(s, req, &answer);
}

static void hit(struct server *s, enum store_bound which, struct evhttp_request *req) {
    const char *who = crowd_address(s->crowd, evhttp_request_get_connection(req));
    bounds_hit(&s->bounds, which, who, clock_monotonic_ns());
}

static void on_slow(void *arg, const char *who) {
    struct server *s = arg;
    bounds_hit(&s->bounds, BOUND_SLOW, who, clock_monotonic_ns());
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
    struct server *s = arg;
    streams_send(s->streams);
}

static void on_leases(void *arg, int64_t now_ns) {
    state_changed(arg);
}

/* The request's body in one piece; it lives as long as the request. */
static const char *request_body(struct evhttp_request *req, size_t *ret_n) {
    struct evbuffer *in = evhttp_request_get_input_buffer(req);
    *ret_n = evbuffer_get_length(in);
    return *ret_n ? (const char *)evbuffer_pullup(in, -1) : "";
}

static const char *header_of(struct evhttp_request *req, const char *name) {
    return evhttp_find_header(evhttp_request_get_input_headers(req), name);
}

/* Who has shown a token is no page's doing. */
static bool admit_page(struct server *s, struct evhttp_request *req) {
    const char *host = s->token || s->tls_admits ? NULL : header_of(req, "Host");
    const char *why = page_refuses(header_of(req, "Origin"), host, s->names);
    if (!why)
        return true;
    hit(s, BOUND_PAGES, req);
    refuse(s, req, ANSWER_FORBIDDEN, why);
    return false;
}

static bool admit_token(struct server *s, struct evhttp_request *req) {
    const char *shown = header_of(req, "Authorization");
    if (!s->token || token_shown(shown, s->token))
        return true;
    refuse(s, req, ANSWER_STRANGER,
           shown ? "the token is not the one that this store was given"
                 : "this store wants a token: --rdzv-conf token_file=FILE, or the variable "
                   "RANKRUN_STORE_TOKEN");
    return false;
}

/* Where etcd takes a password a store of ours that has a token of its own tells it to our user on
 * other hosts, sealed (base/sys/munge.h): anybody may ask. */
static void on_authenticate(struct evhttp_request *req, void *arg) {
    struct server *s = arg;
    struct answer answer = {.status = 200};
    struct json_writer w = {.out = &answer.body};
    ledger_whole(s->ledger, evhttp_connection_get_bufferevent(evhttp_request_get_connection(req)));
    if (!admit_page(s, req))
        return;
    if (evhttp_request_get_command(req) != EVHTTP_REQ_POST) {
        answer_refuse(&answer, ANSWER_METHOD, "Method Not Allowed");
    } else {
        json_object(&w, NULL);
        json_put_string(&w, "munge", buf_str(&s->sealed));
        json_end_object(&w);
    }
    send_answer(s, req, &answer);
}

/* Of each request, first of all. False: it has been answered already. */
static bool admit(struct server *s, struct evhttp_request *req) {
    struct evhttp_connection *c = evhttp_request_get_connection(req);
    ledger_whole(s->ledger, evhttp_connection_get_bufferevent(c));
    if (!admit_page(s, req) || !admit_token(s, req))
        return false;
    crowd_asked(s->crowd, c, CROWD_GUEST);
    return true;
}

static void trust(struct server *s, struct evhttp_request *req) {
    struct evhttp_connection *c = evhttp_request_get_connection(req);
    crowd_asked(s->crowd, c, CROWD_AGENT);
    ledger_trust(s->ledger, evhttp_connection_get_bufferevent(c));
}

static bool is_agents(const struct server *s, struct evhttp_request *req) {
    return crowd_rank_of(s->crowd, evhttp_request_get_connection(req)) == CROWD_AGENT;
}

static void open_stream(struct server *s, struct evhttp_request *req,
                        const struct gateway_watch *watch) {
    if (answer_is_of_run(s->kv, watch->key, watch->range_end))
        trust(s, req);
    if (!streams_have_room(s->streams, watch, is_agents(s, req))) {
        hit(s, BOUND_WATCHES, req);
        refuse(s, req, ANSWER_FULL, "this store has as many watches of ranges as it takes");
        return;
    }
    metrics_count(&s->metrics, path_of(req), 200);
    streams_open(s->streams, req, watch);
    loop_timer_at(s->fan_out, clock_monotonic_ns()); /* it may have asked for the past */
}

static void on_watch(struct evhttp_request *req, void *arg) {
    struct server *s = arg;
    if (!admit(s, req))
        return;
    ARENA_FINI struct arena arena = {0};
    struct gateway_watch watch;
    struct err err = {0};
    size_t n;
    const char *body = request_body(req, &n);
    if (gateway_take_watch(&arena, body, n, &watch, &err) == 0)
        open_stream(s, req, &watch);
    else
        refuse(s, req, ANSWER_INVALID, err.msg);
}

static void on_lifeline(struct evhttp_request *req, void *arg) {
    struct server *s = arg;
    if (!admit(s, req))
        return;
    struct err err = {0};
    size_t n;
    const char *body = request_body(req, &n);
    if (s->tls)
        err_say(&err, -EINVAL, "lifeline: nobody signs the end of a connection: none over TLS");
    else if (lifelines_take(s->lifelines, req, body, n, &err) == 0) {
        metrics_count(&s->metrics, LIFELINE_PATH, 200);
        trust(s, req);
        return; /* it is never answered */
    }
    refuse(s, req, ANSWER_INVALID, err.msg);
}

static void on_metrics(struct evhttp_request *req, void *arg) {
    struct server *s = arg;
    if (!admit(s, req))
        return;
    BUF_FINI struct buf text = {0};
    struct metrics_now now = {.connections = tcp_count_connections(s->port),
                              .agents = crowd_count(s->crowd, CROWD_AGENT),
                              .watches = streams_count(s->streams),
                              .lifelines = lifelines_count(s->lifelines),
                              .held = ledger_held(s->ledger),
                              .full = s->quota.runs_full,
                              .others_full = s->quota.others_full,
                              .bounds = &s->bounds};
    if (evhttp_request_get_command(req) != EVHTTP_REQ_GET) {
        refuse(s, req, ANSWER_METHOD, "Method Not Allowed");
        return;
    }
    metrics_count(&s->metrics, METRICS_PATH, 200);
    metrics_put(&text, &s->metrics, &now, s->kv);
    reply_send_text(req, 200, &text, METRICS_TYPE);
}

static void on_certified(void *arg) {
    state_changed(arg);
}

/* Long answers that others than agents have not read show keys that may be deleted by now. */
static bool shows_too_much(struct server *s, struct evhttp_request *req, const struct answer *a) {
    return a->more && !is_agents(s, req) && replies_held(s->replies) + a->hold->n > SHOWN_MAX;
}

static void settle(struct server *s, struct evhttp_request *req, struct answer *a, size_t n) {
    if (a->of_run)
        trust(s, req);
    if (a->status == 200 && a->adds)
        quota_wrote(&s->quota, s->kv, n);
    if (a->status == 200 && a->takes)
        quota_deleted(&s->quota);
    if (a->refused_full)
        hit(s, BOUND_KEPT, req);
    if (!shows_too_much(s, req, a)) {
        send_answer(s, req, a);
        return;
    }
    hit(s, BOUND_ANSWERS, req);
    answer_fini(a, s->kv);
    refuse(s, req, ANSWER_FULL, "this store is answering too much; ask again, and with a limit");
}

static void on_request(struct evhttp_request *req, void *arg) {
    struct server *s = arg;
    if (!admit(s, req))
        return;
    struct answer answer = {.status = 200, .asks_run = !is_agents(s, req)};
    size_t n;
    const char *body = request_body(req, &n);
    if (evhttp_request_get_command(req) != EVHTTP_REQ_POST)
        answer_refuse(&answer, ANSWER_METHOD, "Method Not Allowed");
    else
        answer_request(&answer, s->kv, path_of(req), body, n, clock_monotonic_ns(), &s->quota);
    settle(s, req, &answer, n);
    state_changed(s);
}

/* ---- the whole ---- */

static struct evhttp *http_server_new(struct server *s) {
    struct evhttp *h = evhttp_new(loop_base(s->loop));
    if (!h)
        abort();
    evhttp_set_max_body_size(h, BODY_MAX);
    evhttp_set_max_headers_size(h, HEADERS_MAX);
    evhttp_set_timeout(h, IDLE_S);
    evhttp_set_bevcb(h, server_accept, s);
    evhttp_set_allowed_methods(h, EVHTTP_REQ_POST | EVHTTP_REQ_GET | EVHTTP_REQ_PUT);
    evhttp_set_cb(h, "/v3/watch", on_watch, s);
    evhttp_set_cb(h, "/v3/auth/authenticate", on_authenticate, s);
    evhttp_set_cb(h, LIFELINE_PATH, on_lifeline, s);
    evhttp_set_cb(h, METRICS_PATH, on_metrics, s);
    evhttp_set_gencb(h, on_request, s);
    return h;
}

static void make_parts(struct server *s) {
    struct server_limits limits;
    s->bounds.port = s->port;
    s->crowd = crowd_new(s->loop, &s->bounds, &(struct crowd_watch){server_gone, s});
    s->flow = flow_new(s->loop);
    const struct stream_parts parts = {s->kv, s->crowd, s->flow, on_slow, s};
    s->replies = replies_new(&parts);
    s->streams = streams_new(&parts);
    s->lifelines = lifelines_new(s->loop, s->kv, s->crowd, on_certified, s);
    s->ledger = ledger_new(s->loop, &s->bounds, s->crowd);
    server_limits_of(&limits, SERVER_MEMORY_MB, 0);
    server_limit(s, &limits);
}

struct server *server_new(struct loop *l, struct kv *kv, const char *host, uint16_t port,
                          struct err *err) {
    int fd = -1;
    if (tcp_listen(host, port, BACKLOG, &fd, &port, err) < 0)
        return NULL;
    tcp_bound_silence(fd, SILENCE_S); /* what is accepted inherits it */
    struct server *s = mem_new(struct server);
    *s = (struct server){.loop = l, .kv = kv, .port = port, .loopback = tcp_is_loopback(fd)};
    make_parts(s);
    s->fan_out = loop_timer(l, on_fan_out, s);
    s->leases = loop_timer(l, on_leases, s);
    s->http = http_server_new(s);
    struct evhttp_bound_socket *bound = evhttp_accept_socket_with_handle(s->http, fd);
    if (bound) {
        server_listen(s, evhttp_bound_socket_get_listener(bound));
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
    server_unlisten(s);
    lifelines_free(s->lifelines);
    streams_free(s->streams);
    replies_free(s->replies);
    evhttp_free(s->http);
    tls_free(s->tls);
    flow_free(s->flow);
    ledger_free(s->ledger);
    crowd_free(s->crowd);
    buf_fini(&s->tls_wanted);
    buf_fini(&s->sealed);
    loop_source_free(s->fan_out);
    loop_source_free(s->leases);
    free(s);
    return NULL;
}

/* Of all memory: what runs keep, what others keep, history, and what is on its way; the rest is for
 * connections, and for what is not in use but not given back. */
void server_limits_of(struct server_limits *ret, size_t memory_mb, size_t connections_max) {
    size_t part = (memory_mb << 20) / 32;
    *ret = (struct server_limits){.held_max = 5 * part,
                                  .runs_max = 10 * part,
                                  .others_max = 4 * part,
                                  .history_max = 2 * part,
                                  .request_ns = REQUEST_NS,
                                  .connections_max = connections_max};
}

void server_limit(struct server *s, const struct server_limits *l) {
    struct ledger_limits held = {.held_max = l->held_max, .request_ns = l->request_ns};
    ledger_set_limits(s->ledger, &held);
    flow_limit(s->flow, l->held_max / 2, l->held_max / 4);
    s->quota.limits = (struct quota_limits){
        .runs_max = l->runs_max, .others_max = l->others_max, .history_max = l->history_max};
    crowd_limit(s->crowd, l->connections_max ? l->connections_max : crowd_default());
}

void server_allow(struct server *s, const char *names) {
    s->names = names;
}

void server_demand(struct server *s, const char *token) {
    s->token = token;
}

void server_draw_token(struct server *s) {
    token_draw(s->drawn);
    if (munge_seal(s->drawn, &s->sealed, NULL) == 0)
        server_demand(s, s->drawn);
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

size_t server_agents(const struct server *s) {
    return crowd_count(s->crowd, CROWD_AGENT);
}

size_t server_watches(const struct server *s) {
    return streams_count(s->streams);
}
