/* The store elsewhere: etcd's v3 JSON gateway over HTTP, spoken alike by a real etcd cluster and by
 * the embedded store. One POST per call; one that streams per watch. */
#include "agent/store/access.h"
#include "agent/store/gateway.h"
#include "agent/store/sign_in.h"
#include "agent/store/store.h"
#include "base/http/http.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ENDPOINTS_MAX = 16, PORT = 2379 };

struct client {
    struct store store;
    struct http *http;
    struct tcp_endpoint endpoints[ENDPOINTS_MAX];
    int n_endpoints, current; /* current: the one that answers, as far as we know */
    struct list calls;
    uint64_t n_calls; /* ever made */
    struct loop *loop;
    const struct store_access *access; /* NULL: plain HTTP */
    const char *prefix;                /* "/v3", or "/v3beta" of an etcd 3.3 */
    struct sign_in sign_in;            /* calls wait for it */
};

struct client_call {
    struct store_call call;
    struct list node;
    struct http_call *post;
    uint64_t id;
    int endpoint; /* the one it was sent to */
    /* To send it, and to send it again: */
    const char *path, *prefix;
    struct buf body;
    int signed_in; /* how often that had been done when it was sent */
    bool sent_twice;
    int64_t until_ns;
    struct loop_source *late; /* ends its waiting for a token; NULL: it does not wait */
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
    loop_source_free(c->late);
    buf_fini(&c->body);
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

static void put_url(struct buf *url, const struct client *cl, const char *path) {
    store_access_put_origin(url, cl->access, &cl->endpoints[cl->current]);
    buf_printf(url, "%s%s", cl->prefix, path);
}

static void call_send(struct client_call *c);

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

/* By etcd's words: its gateway says 412 up to 3.4, and 400 since. */
static bool is_granted_already(const struct client_call *c, const char *text) {
    return c->lease && text && str_eq(text, kv_text(KV_LEASE_EXISTS));
}

static void reply(struct client_call *c, const struct store_reply *r) {
    store_reply_fn *fn = c->on_reply;
    void *fn_arg = c->arg;
    call_free(c);
    fn(fn_arg, r);
}

/* Sends it once more where a first answer says that we were not understood. */
static bool send_again(struct client_call *c, long status, const char *text) {
    struct client *cl = client_of(c->call.store);
    bool unknown_path = status == 404 && !text;
    if (unknown_path) /* sent twice: it is neither */
        cl->prefix = c->sent_twice || str_eq(c->prefix, "/v3beta") ? "/v3" : "/v3beta";
    if (c->sent_twice || !(unknown_path || (sign_in_is_used(&cl->sign_in) &&
                                            gateway_error_is_of_token(status, text))))
        return false;
    if (!unknown_path && c->signed_in == cl->sign_in.times)
        cl->sign_in.stale = true;
    c->sent_twice = true;
    call_send(c);
    return true;
}

static void on_answer(void *arg, long status, const struct buf *body, const char *error) {
    struct client_call *c = arg;
    ARENA_FINI struct arena arena = {0};
    struct kv_txn_result txn;
    struct store_reply r = {.outcome = STORE_UNKNOWN, .why = error};
    c->post = NULL; /* it has ended by itself */
    if (status == 200) {
        read_reply(c, &arena, body, &txn, &r);
    } else if (status) {
        const char *text = gateway_take_error(&arena, buf_str(body), body->len);
        if (send_again(c, status, text)) {
            return;
        }
        r.why =
            text ? gateway_advise(&arena, text) : gateway_describe_stranger(&arena, status, body);
        r.outcome = gateway_error_is_final(status, text) ? STORE_REFUSED : STORE_UNKNOWN;
        if (is_granted_already(c, text))
            r = (struct store_reply){STORE_ANSWERED, .lease = c->asked.id, .ttl_s = c->asked.ttl_s};
    }
    if (r.outcome == STORE_UNKNOWN)
        endpoint_failed(c);
    reply(c, &r);
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
    ARENA_FINI struct arena arena = {0};
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
    struct client_call *c = arg;
    c->post = NULL; /* it has ended by itself */
    endpoint_failed(c);
    watch_end(c, status ? "the store ended the watch" : error, 0);
}

/* ---- waiting for a token ---- */

static void call_fail(struct client_call *c, const char *why) {
    struct store_reply r = {.outcome = STORE_UNKNOWN, .why = why};
    if (c->on_news)
        watch_end(c, why, 0);
    else
        reply(c, &r);
}

static struct client_call *find_waiting(struct client *cl, uint64_t up_to) {
    list_each(it, &cl->calls) {
        struct client_call *c = list_entry(it, struct client_call, node);
        if (c->late && c->id <= up_to)
            return c;
    }
    return NULL;
}

static void sign_in(struct client *cl) {
    BUF_FINI struct buf url = {0};
    put_url(&url, cl, "/auth/authenticate");
    sign_in_begin(&cl->sign_in, buf_str(&url));
}

/* Calls that are made by a callback from here on are not of those that waited. */
static void on_signed_in(void *arg, enum sign_in_end end, const char *why) {
    struct client *cl = arg;
    uint64_t up_to = cl->n_calls;
    if (end == SIGN_IN_NO_SUCH_URL && !str_eq(cl->prefix, "/v3beta")) {
        cl->prefix = "/v3beta";
        sign_in(cl);
        return;
    }
    if (end != SIGNED_IN) {
        cl->prefix = "/v3";
        cl->current = (cl->current + 1) % cl->n_endpoints;
    }
    for (struct client_call *c; (c = find_waiting(cl, up_to));) {
        c->late = loop_source_free(c->late);
        if (end == SIGNED_IN)
            call_send(c);
        else
            call_fail(c, why);
    }
}

static void on_late(void *arg, int64_t now_ns) {
    struct client_call *c = arg;
    struct client *cl = client_of(c->call.store);
    call_fail(c, cl->access->user ? "the store has not taken our password in time"
                                  : "the store has not said in time whether it wants a token");
}

/* ---- asking ---- */

static void call_send(struct client_call *c) {
    struct client *cl = client_of(c->call.store);
    int64_t left_ms = (c->until_ns - clock_monotonic_ns()) / 1000000;
    BUF_FINI struct buf url = {0};
    c->post = NULL;
    if (sign_in_is_due(&cl->sign_in)) {
        c->late = loop_timer(cl->loop, on_late, c);
        loop_timer_at(c->late, c->until_ns);
        sign_in(cl);
        return;
    }
    c->endpoint = cl->current;
    c->prefix = cl->prefix;
    c->signed_in = cl->sign_in.times;
    put_url(&url, cl, c->path);
    struct http_request r = {.method = "POST",
                             .url = buf_str(&url),
                             .body = &c->body,
                             .type = HTTP_JSON,
                             .on_data = c->on_news ? on_stream : NULL,
                             .timeout_ms = left_ms > 1 ? left_ms : 1};
    c->post = http_send(cl->http, &r, c->on_news ? on_stream_end : on_answer, c);
}

/* With on_news it is a stream; takes over body. */
static struct client_call *post(struct store *s, const char *path, struct buf *body,
                                int64_t timeout_ms, store_reply_fn *on_reply,
                                store_news_fn *on_news, void *arg) {
    struct client *cl = client_of(s);
    struct client_call *c = mem_new(struct client_call);
    *c = (struct client_call){.call = {s},
                              .id = ++cl->n_calls,
                              .path = path,
                              .body = *body,
                              .until_ns = clock_monotonic_ns() + timeout_ms * 1000000,
                              .on_reply = on_reply,
                              .on_news = on_news,
                              .arg = arg};
    *body = (struct buf){0};
    list_append(&cl->calls, &c->node);
    call_send(c);
    return c;
}

static struct store_call *client_txn(struct store *s, const struct kv_txn *txn, int64_t timeout_ms,
                                     store_reply_fn *fn, void *arg) {
    struct buf body = {0};
    gateway_put_txn(&body, txn);
    struct client_call *c = post(s, "/kv/txn", &body, timeout_ms, fn, NULL, arg);
    return &c->call;
}

static struct store_call *lease(struct store *s, const char *path, struct gateway_lease l,
                                int64_t timeout_ms, store_reply_fn *fn, void *arg) {
    struct buf body = {0};
    gateway_put_lease(&body, &l);
    struct client_call *c = post(s, path, &body, timeout_ms, fn, NULL, arg);
    c->lease = true;
    c->asked = l;
    return &c->call;
}

static struct store_call *client_grant(struct store *s, int64_t id, int64_t ttl_s,
                                       int64_t timeout_ms, store_reply_fn *fn, void *arg) {
    struct gateway_lease l = {.id = id, .ttl_s = ttl_s};
    return lease(s, "/lease/grant", l, timeout_ms, fn, arg);
}

static struct store_call *client_keepalive(struct store *s, int64_t id, int64_t timeout_ms,
                                           store_reply_fn *fn, void *arg) {
    struct gateway_lease l = {.id = id};
    return lease(s, "/lease/keepalive", l, timeout_ms, fn, arg);
}

static struct store_call *client_watch(struct store *s, struct kv_bytes key,
                                       struct kv_bytes range_end, int64_t start_revision,
                                       int64_t timeout_ms, store_news_fn *fn, void *arg) {
    struct gateway_watch w = {key, range_end, start_revision};
    struct buf body = {0};
    gateway_put_watch(&body, &w);
    struct client_call *c = post(s, "/watch", &body, timeout_ms, NULL, fn, arg);
    return &c->call;
}

static void client_cancel(struct store_call *call) {
    struct client_call *c = call_of(call);
    if (c->post)
        http_cancel(c->post);
    call_free(c);
}

static void client_free(struct store *s) {
    struct client *cl = client_of(s);
    list_each_safe(it, next, &cl->calls)
        client_cancel(&list_entry(it, struct client_call, node)->call);
    sign_in_cancel(&cl->sign_in);
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
    ARENA_FINI struct arena arena = {0};
    size_t n;
    char **list = str_split(&arena, text, ',', &n);
    int rc = n <= ENDPOINTS_MAX
                 ? 0
                 : err_say(err, -EINVAL, "'%s': give at most %d endpoints", text, ENDPOINTS_MAX);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = tcp_endpoint_parse(list[i], PORT, &c->endpoints[c->n_endpoints++], err);
    return rc;
}

struct store *store_client_new(struct loop *l, const char *endpoints,
                               const struct store_access *access, struct err *err) {
    struct client *c = mem_new(struct client);
    *c = (struct client){.store = {&CLIENT}, .loop = l, .access = access, .prefix = "/v3"};
    list_init(&c->calls);
    if (read_endpoints(c, endpoints, err) == 0)
        c->http = store_access_http(l, access, err);
    if (!c->http) {
        free(c);
        return NULL;
    }
    c->sign_in = (struct sign_in){.access = access, .http = c->http, .fn = on_signed_in, .arg = c};
    http_show_token(c->http, access ? access->token : NULL);
    return &c->store;
}
