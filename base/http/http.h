/* http: requests of HTTP/1.1 on the loop, over plain connections or TLS, and one that is waited
 * for.
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

#include "base/buf.h"
#include "base/err.h"
#include "base/sys/loop.h"

#include <stddef.h>

#define HTTP_JSON "application/json"

struct http;
struct http_call;

/* What may be wrong where there was no answer, for which whoever asks has an advice. */
enum http_trouble {
    HTTP_MAY_WANT_TLS,         /* a plain connection ended without an answer, or with a TLS alert */
    HTTP_MAY_WANT_CERTIFICATE, /* one by TLS did */
    HTTP_NOT_TRUSTED,          /* the server's certificate is signed by nobody whom we trust */
    HTTP_OWN_CERTIFICATE,      /* ours cannot be used */
    HTTP_BAD_CACERT,
    HTTP_TROUBLES
};

/* How servers are reached. Plain data; the strings are lent. */
struct http_way {
    bool https;
    const char *cacert;     /* file, PEM: who signs the server's certificate; NULL: the system's */
    const char *cert, *key; /* files, PEM: ours; NULL: none. key NULL: it is in cert, too */
    const char *advice[HTTP_TROUBLES]; /* goes behind what has happened; NULL: none */
    const char *const *names;          /* "NAME=ADDRESS" each: hosts that no resolver knows */
    size_t names_n;
    const char *token; /* as http_show_token; NULL: none */
};

/* status is the HTTP status, or 0 when there was no whole answer: then body is empty, error says
 * why (a sentence part, for people), and whether the request took effect is not known. body lives
 * until the return. */
typedef void http_done_fn(void *arg, long status, const struct buf *body, const char *error);
/* A piece of a streaming answer, as it comes. */
typedef void http_data_fn(void *arg, const char *p, size_t n);

/* NULL: https without libcurl, err says what to install. */
struct http *http_new(struct loop *l, const struct http_way *way, struct err *err);
struct http *http_free(struct http *h); /* cancels what is left; NULL is
                                           allowed; not from a callback */

/* What every later request says in its Authorization header; copied. "": nothing. */
void http_authorize(struct http *h, const char *text);
/* The same with `Bearer TOKEN`; NULL: nothing. */
void http_show_token(struct http *h, const char *token);

struct http_request {
    const char *method;
    const char *url;
    const char *agent;      /* who asks (User-Agent); NULL: that is not said */
    const struct buf *body; /* NULL: none */
    const char *type;       /* of the body */
    const char *header;     /* of the answer, "X-Name:": http_header gives its value; NULL: none */
    http_data_fn *on_data;  /* streams the answer, body of done is empty; NULL: it is collected */
    bool waits;             /* timeout_ms limits only the time to connect; so it is for a stream */
    int64_t timeout_ms;
};

/* Sends what r says (all but header is copied). Never NULL. */
struct http_call *http_send(struct http *h, const struct http_request *r, http_done_fn *on_done,
                            void *arg);
/* Inside a done function: what the header that its call asked for said; "" when it was not there.
 */
const char *http_header(const struct http *h);
/* Drops the call, and its connection with it: nothing late can arrive on it, nothing else waits
 * behind it. */
void http_cancel(struct http_call *c);

/* ---- asking and waiting ---- */

struct http_question {
    struct http_way way;         /* https is what the url says */
    struct http_request request; /* timeout_ms: to connect */
    int64_t silence_ms;          /* how long the server may say nothing then; 0: for ever */
    size_t bytes_max;
    /* Of an answer that need not end: whether what has come is enough. NULL: all of it is wanted. */
    bool (*enough)(const struct buf *body);
};

/* Asks on a loop of its own until it is answered: for a process that does nothing else. The body
 * goes behind what is in ret. 0, or negative with a sentence: -ENOENT https without libcurl,
 * -EPROTO another status than 2xx (the body is there), -EMSGSIZE a body longer than bytes_max,
 * -EAGAIN it was silent for too long, -EIO there was no answer. err is needed. */
int http_ask(const struct http_question *q, struct buf *ret, struct err *err);

/* ---- the words of a request ---- */

/* `Bearer TOKEN` (RFC 6750, section 2.1), the value of an Authorization header. NULL: nothing. */
void http_put_bearer(struct buf *out, const char *token);
/* The token of such a value; NULL: it is none, or there was no header (NULL). */
const char *http_bearer_of(const char *authorization);

/* The whole of a request, for a connection that is the caller's. Of r all that is sent but its url;
 * authority: the host, and its port, as in the url; authorization: "": none. */
void http_put_request(struct buf *out, const struct http_request *r, const char *authority,
                      const char *path, const char *authorization);
