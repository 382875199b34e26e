/* access: how a store elsewhere is reached beyond its address. Plain data; the strings are lent. */
#pragma once

#include "agent/store/token.h"
#include "base/buf.h"
#include "base/sys/loop.h"
#include "base/sys/tcp.h"

#include <stdbool.h>

struct http;

struct store_access {
    bool https;
    bool plain;             /* it was said that it is not https */
    const char *cacert;     /* file, PEM: who signs the store's certificate; NULL: the system's */
    const char *cert, *key; /* files, PEM: ours; NULL: none. key NULL: it is in cert, too */
    const char *user, *password; /* of etcd's v3 authentication; NULL: none */
    const char *token; /* of the embedded store, see agent/store/token.h; NULL: none is known */
    /* The store may seal a token for our user (base/sys/munge.h); it is asked for that where no
     * token is known. Who opens it puts it there: "" none yet. NULL: it is not asked. */
    char (*sealed)[TOKEN_MAX + 1];
};

/* The token to show with a request; NULL: none. */
const char *store_access_token(const struct store_access *a);

/* What makes its requests, with what to do about their failures in words of our options. a is
 * lent; NULL: plain HTTP, and no advice. NULL: https without libcurl. */
struct http *store_access_http(struct loop *l, const struct store_access *a, struct err *err);
/* "https://[::1]:2379": what every url there begins with. */
void store_access_put_origin(struct buf *url, const struct store_access *a,
                             const struct tcp_endpoint *e);
