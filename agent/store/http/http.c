#include "agent/store/http/http.h"

#include "agent/base/str.h"
#include "agent/store/access.h"
#include "agent/store/http/transport.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* An answer that is collected may not be longer: nothing the agents ask for comes near. */
enum { BODY_MAX = 64 << 20 };

/* ---- what a transport hands over ---- */

static void call_make_ready(struct http_call *c) {
    list_remove(&c->node);
    list_append(&c->http->ready, &c->node);
}

bool http_call_take(struct http_call *c, const char *p, size_t n) {
    if (c->received.len + n > BODY_MAX)
        return false;
    buf_put(&c->received, p, n);
    if (c->on_data)
        call_make_ready(c);
    return true;
}

void http_call_take_header(struct http_call *c, const char *line, size_t n) {
    size_t name = c->header ? strlen(c->header) : n, k = 0;
    if (n <= name || strncasecmp(line, c->header, name) != 0)
        return;
    for (size_t i = name; i < n && k + 1 < sizeof(c->header_value); i++)
        if (!isspace((unsigned char)line[i]))
            c->header_value[k++] = line[i];
    c->header_value[k] = '\0';
}

void http_call_end(struct http_call *c, long status) {
    c->status = status;
    c->ended = true;
    call_make_ready(c);
}

/* ---- telling the owners ---- */

static void call_free(struct http_call *c) {
    list_remove(&c->node);
    buf_fini(&c->received);
    c->http->transport->drop(c);
}

/* The call may be cancelled by its owner from inside either function: nothing of it is touched
 * after the last one, and what is told is held apart. */
static void call_tell(struct http_call *c) {
    struct buf received = c->received;
    c->received = (struct buf){0};
    list_remove(&c->node);
    list_append(&c->http->calls, &c->node);
    if (c->on_data && received.len) {
        if (c->ended)
            call_make_ready(c); /* comes again, for its end */
        c->on_data(c->arg, received.data, received.len);
    } else if (c->ended) {
        struct http_call end = *c;
        call_free(c);
        if (end.on_data || !end.status)
            buf_clear(&received);
        str_copy(end.http->header, sizeof(end.http->header), end.header_value);
        end.on_done(end.arg, end.status, &received, end.error);
    }
    buf_fini(&received);
}

void http_tell(struct http *h) {
    if (h->telling)
        return;
    h->telling = true;
    while (!list_empty(&h->ready))
        call_tell(list_entry(h->ready.next, struct http_call, node));
    h->telling = false;
}

/* ---- the public part ---- */

struct http *http_new_over(const struct http_transport *t, struct loop *l,
                           const struct store_access *access, struct err *err) {
    struct http *h = t->open(l, err);
    if (!h)
        return NULL;
    h->transport = t;
    h->loop = l;
    h->access = access;
    list_init(&h->calls);
    list_init(&h->ready);
    return h;
}

struct http *http_new(struct loop *l, const struct store_access *access, struct err *err) {
    return http_new_over(access && access->https ? &http_curl : &http_plain, l, access, err);
}

struct http *http_free(struct http *h) {
    if (!h)
        return NULL;
    list_each_safe(it, next, &h->calls) call_free(list_entry(it, struct http_call, node));
    list_each_safe(it, next, &h->ready) call_free(list_entry(it, struct http_call, node));
    h->transport->close(h);
    return NULL;
}

void http_authorize(struct http *h, const char *token) {
    str_copy(h->token, sizeof(h->token), token);
}

static struct http_call *call_new(struct http *h, http_data_fn *on_data, http_done_fn *on_done,
                                  void *arg) {
    struct http_call *c = h->transport->new_call(h);
    c->http = h;
    c->on_data = on_data;
    c->on_done = on_done;
    c->arg = arg;
    list_append(&h->calls, &c->node);
    return c;
}

struct http_call *http_post(struct http *h, const char *url, const struct buf *body,
                            int64_t timeout_ms, http_data_fn *on_data, http_done_fn *on_done,
                            void *arg) {
    struct http_call *c = call_new(h, on_data, on_done, arg);
    struct http_letter letter = {.method = "POST",
                                 .url = url,
                                 .type = "application/json",
                                 .body = body,
                                 .token = h->token,
                                 .waits = on_data,
                                 .timeout_ms = timeout_ms};
    h->transport->send(c, &letter);
    return c;
}

struct http_call *http_send(struct http *h, const struct http_request *r, http_done_fn *on_done,
                            void *arg) {
    struct http_call *c = call_new(h, NULL, on_done, arg);
    struct http_letter letter = {.method = r->method,
                                 .url = r->url,
                                 .type = "application/x-www-form-urlencoded",
                                 .body = r->form,
                                 .token = "",
                                 .waits = r->waits,
                                 .timeout_ms = r->timeout_ms};
    c->header = r->header;
    h->transport->send(c, &letter);
    return c;
}

const char *http_header(const struct http *h) {
    return h->header;
}

void http_cancel(struct http_call *c) {
    call_free(c);
}
