/* fake_http: what a client of a store asks of base/http is kept as one text each, and whoever tests the client answers it. To be
 * included before the client's source. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/http/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { FAKE_CALLS_MAX = 64 };

struct fake_call {
    bool open; /* neither answered nor cancelled */
    char said[4096];
    http_done_fn *on_done;
    http_data_fn *on_data;
    void *arg;
};

static struct fake_call fake_calls[FAKE_CALLS_MAX];
static int fake_n, fake_cancelled, fake_freed;              /* fake_n: that were ever sent */
static bool fake_none;                                      /* there is no way to the store */
__attribute__((unused)) static const char *fake_value = ""; /* of the header that was asked for */
static char fake_token[64];
static const void *fake_access; /* as whom the last way was asked for */

static inline void fake_begin(void) {
    fake_n = fake_cancelled = fake_freed = 0;
    fake_none = false;
    snprintf(fake_token, sizeof(fake_token), "(never)");
}

static char fake_loop, fake_way; /* fake_loop: on which all of it is */

static inline struct http *fake_new(const struct loop *l, const void *access, struct err *err) {
    assert_ptr_equal(l, &fake_loop);
    fake_access = access;
    if (fake_none)
        err_say(err, -2, "no way there");
    return fake_none ? NULL : (struct http *)(void *)&fake_way;
}

static inline struct http_call *fake_send(const struct http_request *r, http_done_fn *on_done,
                                          void *arg) {
    assert_in_range(fake_n, 0, FAKE_CALLS_MAX - 1);
    struct fake_call *c = &fake_calls[fake_n++];
    *c = (struct fake_call){true, "", on_done, r->on_data, arg};
    assert_null(r->agent);
    snprintf(c->said, sizeof(c->said), "%s %s%s%s%s%s %lld ms: %s", r->method, r->url,
             r->on_data ? " streamed" : "", r->waits ? " waited for" : "",
             r->header ? " with " : "", r->header ? r->header : "", (long long)r->timeout_ms,
             r->body ? buf_str(r->body) : "(no body)");
    if (r->body)
        snprintf(c->said + strlen(c->said), sizeof(c->said) - strlen(c->said), " (%s)", r->type);
    return (struct http_call *)(void *)c;
}

static inline void fake_is(const struct http *h) {
    assert_ptr_equal(h, &fake_way);
}

/* NULL is allowed. */
static inline void fake_free(const struct http *h) {
    if (h)
        fake_is(h);
    fake_freed += h != NULL;
}

static inline void fake_cancel(struct http_call *call) {
    struct fake_call *c = (struct fake_call *)(void *)call;
    assert_true(c && c->open);
    c->open = false;
    fake_cancelled++;
}

static inline struct fake_call *fake_last(void) {
    assert_int_not_equal(fake_n, 0);
    return &fake_calls[fake_n - 1];
}

static inline void fake_said(const char *expected) {
    assert_string_equal(fake_last()->said, expected);
}

/* It ends by itself. */
static inline void fake_answer(struct fake_call *c, long status, const char *text,
                               const char *error) {
    BUF_FINI struct buf body = {0};
    buf_puts(&body, text);
    assert_true(c->open);
    c->open = false;
    c->on_done(c->arg, status, &body, error);
}

static inline int fake_open(void) {
    int n = 0;
    for (int i = 0; i < fake_n; i++)
        n += fake_calls[i].open;
    return n;
}

#define http_send(h, r, fn, arg) (fake_is(h), fake_send(r, fn, arg))
#define http_cancel(c)           fake_cancel(c)
#define http_free(h)             fake_free(h)
#define http_header(h)           (fake_is(h), fake_value)
#define http_show_token(h, t)                                                                      \
    (fake_is(h), snprintf(fake_token, sizeof(fake_token), "%s", (t) ? (t) : "(none)"))
#define store_access_http(l, a, err) fake_new(l, a, err)
