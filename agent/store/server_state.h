/* server_state: what server.c and server_connections.c share; nobody else includes it. */
#pragma once

#include "agent/store/limits/bounds.h"
#include "agent/store/metrics.h"
#include "agent/store/quota.h"
#include "agent/store/server.h"
#include "agent/store/token.h"
#include "agent/tls/tls.h"
#include "base/buf.h"
#include "base/list.h"

struct bufferevent;
struct event_base;
struct evconnlistener;
struct evhttp;

enum { SERVER_REASONS_MAX = 8 };

struct server {
    struct list node;
    struct loop *loop;
    struct kv *kv;
    struct evhttp *http;
    struct crowd *crowd;
    struct flow *flow;
    struct replies *replies;
    struct streams *streams;
    struct lifelines *lifelines;
    struct ledger *ledger;
    struct quota quota;
    struct bounds bounds;
    struct loop_source *fan_out; /* due when something was written: after the answer to it */
    struct loop_source *leases;
    struct evconnlistener *listener;
    struct metrics metrics;
    uint16_t port;
    const char *token;       /* NULL: everybody is answered */
    char drawn[TOKEN_DRAWN]; /* the token, where it is the store's own */
    struct buf sealed;       /* the same for our user; empty: it is told to nobody */
    const char *names; /* by which it may be asked for; NULL: none but those that page.h knows */
    bool loopback;     /* no other host reaches it */
    bool stranger_told, crowd_told;
    struct tls *tls; /* NULL: connections are plain */
    struct tls_watch tls_watch;
    struct buf tls_wanted; /* the answer to plain HTTP */
    bool tls_admits;       /* only who has a certificate of the right authority comes in */
    const char *told[SERVER_REASONS_MAX]; /* of handshakes that failed */
};

/* server_connections.c */
/* evhttp asks for one where a connection comes. */
struct bufferevent *server_accept(struct event_base *base, void *server);
/* It is about to be freed. */
void server_gone(void *server, struct bufferevent *b);
/* Connections come from here. */
void server_listen(struct server *s, struct evconnlistener *listener);
void server_unlisten(struct server *s);
