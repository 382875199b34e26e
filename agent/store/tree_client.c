#include "agent/store/tree_client.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "agent/store/access.h"
#include "base/http/http.h"
#include "agent/store/tree_answer.h"
#include "base/sys/tcp.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PORT = 2379, CONNECT_MS = 5000 };

struct tree_client {
    struct http *http;
    const struct store_access *access; /* NULL: plain HTTP */
    struct tcp_endpoint endpoint;
    struct list calls;
    tree_answer_fn *fn;
    void *arg;
    char trouble[256];
};

struct tree_call {
    struct list node;
    struct tree_client *client;
    uint64_t id;
    enum tree_verb verb;
    struct http_call *http;
};

/* ---- asking ---- */

/* As in a form and in a query alike; the slashes of a key stay. */
static void put_escaped(struct buf *b, const char *s, bool slashes) {
    for (; *s; s++)
        if (isalnum((unsigned char)*s) || strchr("-_.~", *s) || (slashes && *s == '/'))
            buf_putc(b, *s);
        else
            buf_printf(b, "%%%02X", (unsigned char)*s);
}

static void put_field(struct buf *b, const char *name, const char *value) {
    buf_printf(b, "%s%s=", b->len ? "&" : "", name);
    put_escaped(b, value, false);
}

static void put_number(struct buf *b, const char *name, int64_t value) {
    buf_printf(b, "%s%s=%" PRId64, b->len ? "&" : "", name, value);
}

static void put_fields(struct buf *b, const struct tree_request *q) {
    if (q->value)
        put_field(b, "value", q->value);
    if (q->compare)
        put_field(b, "prevValue", q->compare);
    if (q->exist != TREE_ANY)
        put_field(b, "prevExist", q->exist == TREE_PRESENT ? "true" : "false");
    if (q->ttl_s)
        put_number(b, "ttl", q->ttl_s);
    if (q->dir)
        put_field(b, "dir", "true");
    if (q->refresh)
        put_field(b, "refresh", "true");
    if (q->verb == TREE_GET || q->verb == TREE_WAIT)
        put_field(b, "recursive", "true");
    if (q->verb == TREE_GET)
        put_field(b, "quorum", "true");
    if (q->verb == TREE_WAIT) {
        put_field(b, "wait", "true");
        put_number(b, "waitIndex", q->from_index);
    }
}

static void put_url(struct buf *b, const struct tree_client *c, const struct tree_request *q) {
    store_access_put_origin(b, c->access, &c->endpoint);
    if (q->verb == TREE_VERSION) {
        buf_puts(b, "/version");
    } else {
        buf_puts(b, "/v2/keys");
        put_escaped(b, q->key, true);
    }
}

/* ---- answers ---- */

static void call_free(struct tree_call *t) {
    list_remove(&t->node);
    free(t);
}

static void on_done(void *arg, long status, const struct buf *body, const char *error) {
    struct tree_call *t = arg;
    struct tree_client *c = t->client;
    ARENA_FINI struct arena arena = {0};
    struct tree_answer answer = {.result = TREE_LOST, .text = error};
    uint64_t id = t->id;
    if (status)
        answer = tree_answer_read(&arena, t->verb, status, body, http_header(c->http));
    if (answer.result == TREE_LOST)
        str_copy(c->trouble, sizeof(c->trouble), answer.text);
    call_free(t);
    c->fn(c->arg, id, &answer);
}

void tree_client_send(struct tree_client *c, uint64_t id, const struct tree_request *q) {
    static const char *const methods[] = {"GET", "GET", "PUT", "DELETE", "GET"};
    struct tree_call *t = mem_new(struct tree_call);
    BUF_FINI struct buf url = {0}, fields = {0};
    *t = (struct tree_call){.client = c, .id = id, .verb = q->verb};
    list_append(&c->calls, &t->node);
    put_url(&url, c, q);
    put_fields(&fields, q);
    if (q->verb != TREE_PUT && fields.len)
        buf_printf(&url, "?%s", buf_str(&fields));
    struct http_request r = {
        .method = methods[q->verb],
        .url = buf_str(&url),
        .body = q->verb == TREE_PUT ? &fields : NULL,
        .type = "application/x-www-form-urlencoded",
        .header = "X-Etcd-Index:",
        .waits = q->verb == TREE_WAIT,
        .timeout_ms = q->verb == TREE_WAIT ? CONNECT_MS : q->timeout_ms,
    };
    t->http = http_send(c->http, &r, on_done, t);
}

void tree_client_cancel(struct tree_client *c, uint64_t id) {
    list_each_safe(it, next, &c->calls) {
        struct tree_call *t = list_entry(it, struct tree_call, node);
        if (t->id != id)
            continue;
        http_cancel(t->http);
        call_free(t);
    }
}

const char *tree_client_trouble(const struct tree_client *c) {
    return c->trouble;
}

struct tree_client *tree_client_new(struct loop *l, const char *endpoint,
                                    const struct store_access *access, tree_answer_fn *fn,
                                    void *arg, struct err *err) {
    struct tree_client *c = mem_new(struct tree_client);
    *c = (struct tree_client){.access = access, .fn = fn, .arg = arg};
    list_init(&c->calls);
    if (tcp_endpoint_parse(endpoint, PORT, &c->endpoint, err) == 0)
        c->http = store_access_http(l, access, err);
    return c->http ? c : tree_client_free(c);
}

struct tree_client *tree_client_free(struct tree_client *c) {
    if (!c)
        return NULL;
    list_each_safe(it, next, &c->calls) {
        struct tree_call *t = list_entry(it, struct tree_call, node);
        http_cancel(t->http);
        call_free(t);
    }
    http_free(c->http);
    free(c);
    return NULL;
}
