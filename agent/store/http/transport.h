/* transport: who carries the requests of an http: one for connections by TLS, one for plain ones.
 *
 * A transport embeds the two structs below as the first members of its own. What its calls receive
 * it hands over as it comes, and calls http_tell at the end of each of its turns of the loop:
 * owners are told there and nowhere else, as they may cancel whatever there is. */
#pragma once

#include "agent/base/list.h"
#include "agent/store/http/http.h"

#include <stdbool.h>

enum { HTTP_HEADER_SIZE = 64, HTTP_TOKEN_SIZE = 4096, HTTP_ERROR_SIZE = 512 };
enum { HTTP_SILENCE_S = 20 }; /* for tcp_bound_silence */

/* What to do where plain HTTP got no answer, or a strange one. */
#define HTTP_WANTS_TLS "; does it want --rdzv-conf protocol=https?"

struct http {
    const struct http_transport *transport;
    struct loop *loop;
    const struct store_access *access; /* NULL: plain HTTP */
    struct list calls;                 /* in flight */
    struct list ready;                 /* have something to tell their owner */
    bool telling;
    char header[HTTP_HEADER_SIZE]; /* of the call that is being told */
    char token[HTTP_TOKEN_SIZE];   /* "": none */
};

struct http_call {
    struct list node;
    struct http *http;
    http_data_fn *on_data;
    http_done_fn *on_done;
    void *arg;
    const char *header; /* wanted, or NULL */
    char header_value[HTTP_HEADER_SIZE];
    struct buf received;
    bool ended;
    long status;
    char error[HTTP_ERROR_SIZE];
};

/* What is to be sent; all of it is lent until send returns. */
struct http_letter {
    const char *method, *url;
    const char *type;       /* of the body */
    const struct buf *body; /* NULL: none */
    const char *token;      /* for Authorization; "": none */
    bool waits;             /* timeout_ms limits only the time to connect */
    int64_t timeout_ms;
};

struct http_transport {
    const char *name;
    /* NULL with err: this host has not what it needs. Whoever calls fills in the struct http. */
    struct http *(*open)(struct loop *l, struct err *err);
    void (*close)(struct http *h); /* no call is left */
    struct http_call *(*new_call)(struct http *h);
    /* The call is filled in and in flight. Its end is told from the loop. */
    void (*send)(struct http_call *c, const struct http_letter *letter);
    void (*drop)(struct http_call *c); /* with its connection, unless it has ended; frees it */
};

extern const struct http_transport http_curl, http_plain;

/* A piece of the body; false: it is too much. */
bool http_call_take(struct http_call *c, const char *p, size_t n);
/* A line of the head, with or without its end. */
void http_call_take_header(struct http_call *c, const char *line, size_t n);
/* status 0: error has been written. */
void http_call_end(struct http_call *c, long status);
/* Tells the owners. */
void http_tell(struct http *h);

/* As http_new, over that one: for the tests. */
struct http *http_new_over(const struct http_transport *t, struct loop *l,
                           const struct store_access *access, struct err *err);
