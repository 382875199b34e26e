/* The store elsewhere: etcd's v3 JSON gateway over HTTP, spoken alike by a real etcd cluster and by
 * the embedded store. One POST per call; one that streams per watch. */
#include "agent/base/list.h"
#include "agent/base/str.h"
#include "agent/store/gateway.h"
#include "agent/store/http.h"
#include "agent/store/store.h"
#include "agent/sys/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ENDPOINTS_MAX = 16, PORT = 2379, HTTP_EXISTS = 412 };

struct client {
    struct store store;
    struct http *http;
    struct tcp_endpoint endpoints[ENDPOINTS_MAX];
    int n_endpoints, current; /* current: the one that answers, as far as we know */
    struct list calls;
    uint64_t n_calls; /* ever made */
};

struct client_call {
    struct store_call call;
    struct list node;
    struct http_call *post;
    uint64_t id;
    int endpoint; /* the one it was sent to */
    bool lease;
    struct gateway_lease asked;
    struct buf line; /* of a watch: what has come of the next line */
    store_reply_fn *on_reply;
    store_news_fn *on_news;
    void *arg;
};

static struct client *client_of(struct store *s) {
    return (struct client *)(void *)s; /* the first member */
}

static struct client_call *call_of(struct store_call *c) {
    return (struct client_call *)(void *)c; /* the first member */
}

static void call_free(struct client_call *c) {
    list_remove(&c->node);
    buf_fini(&c->line);
    free(c);
}

/* An endpoint that did not answer: the next call goes to the next one, unless another call has
 * moved on already. */
static void endpoint_failed(struct client_call *c) {
    struct client *cl = client_of(c->call.store);
    if (c->endpoint == cl->current)
        cl->current = (cl->current + 1) % cl->n_endpoints;
}

/* ---- calls with one answer ---- */

static void read_reply(const struct client_call *c, struct arena *arena, const struct buf *body,
                       struct kv_txn_result *txn, struct store_reply *ret) {
    struct gateway_lease l = {0};
    static struct err err; /* the sentence outlives this function; one thread */
    int rc = c->lease ? gateway_take_lease_answer(arena, buf_str(body), body->len, &l, &err)
                      : gateway_take_txn_result(arena, buf_str(body), body->len, txn, &err);
    ret->outcome = rc == 0 ? STORE_ANSWERED : STORE_UNKNOWN;
    ret->why = rc == 0 ? NULL : err.msg;
    ret->txn = rc == 0 && !c->lease ? txn : NULL;
    ret->lease = l.id;
    ret->ttl_s = l.ttl_s;
}

/* 4xx: the store has judged the request; anything else that is no answer leaves it open (an etcd
 * without a leader says 503, or 500 when it gave up waiting for one). */
static void on_answer(void *arg, long status, const struct buf *body, const char *error) {
    struct client_call *c = arg;
    struct arena arena = {0};
    struct kv_txn_result txn;
    struct store_reply reply = {.outcome = STORE_UNKNOWN, .why = error};
    if (status == 200) {
        read_reply(c, &arena, body, &txn, &reply);
    } else if (status == HTTP_EXISTS && c->lease) {
        reply = (struct store_reply){
            .outcome = STORE_ANSWERED, .lease = c->asked.id, .ttl_s = c->asked.ttl_s};
    } else if (status) {
        const char *text = gateway_take_error(&arena, buf_str(body), body->len);
        reply.why = text ? text : arena_printf(&arena, "HTTP status %ld", status);
        reply.outcome = status >= 400 && status < 500 ? STORE_REFUSED : STORE_UNKNOWN;
    }
    if (reply.outcome == STORE_UNKNOWN)
        endpoint_failed(c);
    store_reply_fn *fn = c->on_reply;
    void *fn_arg = c->arg;
    call_free(c);
    fn(fn_arg, &reply);
    arena_fini(&arena);
}

/* ---- watches ---- */

static void watch_end(struct client_call *c, const char *why, int64_t compact_revision) {
    struct store_news news = {.ended = true, .why = why, .compact_revision = compact_revision};
    if (c->post)
        http_cancel(c->post);
    store_news_fn *fn = c->on_news;
    void *arg = c->arg;
    call_free(c);
    fn(arg, &news);
}

static bool call_lives(const struct client *cl, uint64_t id) {
    list_each(it, &cl->calls) if (list_entry(it, struct client_call, node)->id == id) return true;
    return false;
}

/* Returns false when the watch is over, also because the callback cancelled it: c is gone then. */
static bool take_line(struct client_call *c, const char *text, size_t n) {
    struct client *cl = client_of(c->call.store);
    struct arena arena = {0};
    struct gateway_line line;
    struct err err = {0};
    uint64_t id = c->id;
    bool alive = false;
    if (gateway_take_line(&arena, text, n, &line, &err) < 0) {
        watch_end(c, err.msg, 0);
    } else if (line.canceled) {
        watch_end(c, "the store canceled the watch", line.compact_revision);
    } else {
        struct store_news news = {.events = line.events, .n_events = line.n_events};
        if (line.n_events)
            c->on_news(c->arg, &news);
        alive = call_lives(cl, id);
    }
    arena_fini(&arena);
    return alive;
}

static void on_stream(void *arg, const char *p, size_t n) {
    struct client_call *c = arg;
    buf_put(&c->line, p, n);
    for (char *end; (end = memchr(c->line.data, '\n', c->line.len));) {
        struct buf line = {0};
        buf_put(&line, c->line.data, (size_t)(end - c->line.data));
        buf_consume(&c->line, line.len + 1);
        bool alive = line.len == 0 || take_line(c, line.data, line.len);
        buf_fini(&line);
        if (!alive)
            return;
    }
}

static void on_stream_end(void *arg, long status, const struct buf *body, const char *error) {
    (void)body;
    struct client_call *c = arg;
    c->post = NULL; /* it has ended by itself */
    endpoint_failed(c);
    watch_end(c, status ? "the store ended the watch" : error, 0);
}

/* ---- asking ---- */

static struct client_call *post(struct store *s, const char *path, const struct buf *body,
                                int64_t timeout_ms, bool stream, void *arg) {
    struct client *cl = client_of(s);
    struct client_call *c = calloc(1, sizeof(*c));
    const struct tcp_endpoint *e = &cl->endpoints[cl->current];
    struct buf url = {0};
    if (!c)
        abort();
    *c =
        (struct client_call){.call = {s}, .id = ++cl->n_calls, .endpoint = cl->current, .arg = arg};
    list_append(&cl->calls, &c->node);
    buf_printf(&url, strchr(e->host, ':') ? "http://[%s]:%u%s" : "http://%s:%u%s", e->host, e->port,
               path);
    c->post = http_post(cl->http, buf_str(&url), body, timeout_ms, stream ? on_stream : NULL,
                        stream ? on_stream_end : on_answer, c);
    buf_fini(&url);
    return c;
}

static struct store_call *client_txn(struct store *s, const struct kv_txn *txn, int64_t timeout_ms,
                                     store_reply_fn *fn, void *arg) {
    struct buf body = {0};
    gateway_put_txn(&body, txn);
    struct client_call *c = post(s, "/v3/kv/txn", &body, timeout_ms, false, arg);
    c->on_reply = fn;
    buf_fini(&body);
    return &c->call;
}

static struct store_call *lease(struct store *s, const char *path, struct gateway_lease l,
                                int64_t timeout_ms, store_reply_fn *fn, void *arg) {
    struct buf body = {0};
    gateway_put_lease(&body, &l);
    struct client_call *c = post(s, path, &body, timeout_ms, false, arg);
    c->on_reply = fn;
    c->lease = true;
    c->asked = l;
    buf_fini(&body);
    return &c->call;
}

static struct store_call *client_grant(struct store *s, int64_t id, int64_t ttl_s,
                                       int64_t timeout_ms, store_reply_fn *fn, void *arg) {
    struct gateway_lease l = {.id = id, .ttl_s = ttl_s};
    return lease(s, "/v3/lease/grant", l, timeout_ms, fn, arg);
}

static struct store_call *client_keepalive(struct store *s, int64_t id, int64_t timeout_ms,
                                           store_reply_fn *fn, void *arg) {
    struct gateway_lease l = {.id = id};
    return lease(s, "/v3/lease/keepalive", l, timeout_ms, fn, arg);
}

static struct store_call *client_watch(struct store *s, struct kv_bytes key,
                                       struct kv_bytes range_end, int64_t start_revision,
                                       int64_t timeout_ms, store_news_fn *fn, void *arg) {
    struct gateway_watch w = {key, range_end, start_revision};
    struct buf body = {0};
    gateway_put_watch(&body, &w);
    struct client_call *c = post(s, "/v3/watch", &body, timeout_ms, true, arg);
    c->on_news = fn;
    buf_fini(&body);
    return &c->call;
}

static void client_cancel(struct store_call *call) {
    struct client_call *c = call_of(call);
    http_cancel(c->post);
    call_free(c);
}

static void client_free(struct store *s) {
    struct client *cl = client_of(s);
    list_each_safe(it, next, &cl->calls)
        client_cancel(&list_entry(it, struct client_call, node)->call);
    http_free(cl->http);
    free(cl);
}

static const struct store_ops CLIENT = {
    .name = "etcd v3",
    .txn = client_txn,
    .grant = client_grant,
    .keepalive = client_keepalive,
    .watch = client_watch,
    .cancel = client_cancel,
    .free = client_free,
};

static int read_endpoints(struct client *c, const char *text, struct err *err) {
    struct arena arena = {0};
    size_t n;
    char **list = str_split(&arena, text, ',', &n);
    int rc = n <= ENDPOINTS_MAX
                 ? 0
                 : err_say(err, -EINVAL, "'%s': give at most %d endpoints", text, ENDPOINTS_MAX);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = tcp_endpoint_parse(list[i], PORT, &c->endpoints[c->n_endpoints++], err);
    arena_fini(&arena);
    return rc;
}

struct store *store_client_new(struct loop *l, const char *endpoints, struct err *err) {
    struct client *c = calloc(1, sizeof(*c));
    if (!c)
        abort();
    c->store.ops = &CLIENT;
    list_init(&c->calls);
    if (read_endpoints(c, endpoints, err) == 0)
        c->http = http_new(l, err);
    if (c->http)
        return &c->store;
    free(c);
    return NULL;
}
