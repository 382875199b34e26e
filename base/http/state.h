/* state: what calls (http.c) and the connections that carry them (exchange.c) share.
 *
 * What a call receives is handed over as it comes, and http_tell is called at the end of each turn
 * of the loop: owners are told there and nowhere else, as they may cancel whatever there is. */
#pragma once

#include "base/http/http.h"
#include "base/list.h"
#include "base/sys/tcp.h"

#include <stdbool.h>

enum { HTTP_HEADER_SIZE = 64, HTTP_AUTHORIZATION_SIZE = 4096, HTTP_ERROR_SIZE = 1024 };

struct http {
    struct loop *loop;
    struct http_way way;
    bool by_libcurl; /* connections are libcurl's, with TLS or, in tests, without */
    struct list peers;
    struct list calls; /* in flight */
    struct list ready; /* have something to tell their owner */
    bool telling;
    struct loop_source *soon;      /* something has ended outside the loop */
    char header[HTTP_HEADER_SIZE]; /* of the call that is being told */
    char authorization[HTTP_AUTHORIZATION_SIZE];
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

    struct buf request;
    struct peer *peer;
    struct dial *dial;          /* it is being connected, */
    struct connection *carried; /* or carried, or has ended, */
    struct list waiting;        /* or waits for somebody else's handshake */
    struct loop_source *deadline;
    bool timed; /* deadline has been set */
    bool waits;
    int64_t timeout_ms;
};

/* As the reader of a response: a piece of the body (false: it is too much), a line of the head. */
bool http_call_take(void *call, const char *p, size_t n);
void http_call_take_header(void *call, const char *line, size_t n);
/* status 0: error has been written. */
void http_call_end(struct http_call *c, long status);
/* Tells the owners. */
void http_tell(struct http *h);
/* As http_new; https is also by libcurl where that is not said. */
struct http *http_new_by(struct loop *l, const struct http_way *way, bool libcurl, struct err *err);

/* Finds or makes it. origin: "http://host:port", as the url has it; at: where that is. */
struct peer *peer_of(struct http *h, const char *origin, const struct tcp_endpoint *at);
void peers_free(struct http *h); /* no call is left */

/* peer and request are filled in. */
void exchange_begin(struct http_call *c);
/* Whatever is under way for it ends unheard. */
void exchange_drop(struct http_call *c);
void exchange_on_deadline(void *arg, int64_t now_ns);
