/* http: requests on the loop, over plain connections or TLS.
 *
 * TLS is libcurl's, which is loaded at the first http_new that needs it and never linked: who has
 * no need of it does not pay the milliseconds and megabytes that it costs (decision 0041).
 *
 * A call ends exactly once, by its done function, or by http_cancel, after which nothing of it is
 * called any more. Both may be used, and calls may be made, from inside any callback. A done
 * function is never called from inside the call that asked.
 *
 * A connection that its answer leaves intact is used again. No proxy, and no redirect is followed:
 * it is an answer like any other. */
#pragma once

#include "agent/base/buf.h"
#include "agent/base/err.h"
#include "agent/sys/loop.h"

#include <stddef.h>

struct http;
struct http_call;
struct store_access;

/* status is the HTTP status, or 0 when there was no whole answer: then body is empty, error says
 * why (a sentence part, for people), and whether the request took effect is not known. body lives
 * until the return. */
typedef void http_done_fn(void *arg, long status, const struct buf *body, const char *error);
/* A piece of a streaming answer, as it comes. */
typedef void http_data_fn(void *arg, const char *p, size_t n);

/* access is lent, NULL: plain HTTP. NULL: https without libcurl, err says what to do. */
struct http *http_new(struct loop *l, const struct store_access *access, struct err *err);
struct http *http_free(struct http *h); /* cancels what is left; NULL is
                                           allowed; not from a callback */

struct http_request {
    const char *method; /* PUT, GET, DELETE */
    const char *url;
    const struct buf *form; /* the body, as a form; NULL: none */
    const char *header;     /* of the answer, "X-Name:": http_header gives its value; NULL: none */
    bool waits;             /* timeout_ms limits only the time to connect */
    int64_t timeout_ms;
};

/* Sends what r says (all but header is copied). Never NULL. */
struct http_call *http_send(struct http *h, const struct http_request *r, http_done_fn *on_done,
                            void *arg);
/* Inside a done function: what the header that its call asked for said; "" when it was not there.
 */
const char *http_header(const struct http *h);

/* What every later http_post says in its Authorization header; copied. "": nothing. */
void http_authorize(struct http *h, const char *token);

/* Sends body (copied) as JSON. With on_data the answer is streamed to it and body of done is empty,
 * without it the answer is collected. timeout_ms limits the whole call; for a stream, the time to
 * connect. Never NULL. */
struct http_call *http_post(struct http *h, const char *url, const struct buf *body,
                            int64_t timeout_ms, http_data_fn *on_data, http_done_fn *on_done,
                            void *arg);

/* Drops the call, and its connection with it: nothing late can arrive on it, nothing else waits
 * behind it. */
void http_cancel(struct http_call *c);
