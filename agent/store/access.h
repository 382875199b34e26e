/* access: how a store elsewhere is reached beyond its address. Plain data; the strings are lent. */
#pragma once

#include "agent/store/token.h"

#include <stdbool.h>

struct store_access {
    bool https;
    bool plain;             /* it was said that it is not https */
    const char *cacert;     /* file, PEM: who signs the store's certificate; NULL: the system's */
    const char *cert, *key; /* files, PEM: ours; NULL: none. key NULL: it is in cert, too */
    const char *user, *password; /* of etcd's v3 authentication; NULL: none */
    const char *token; /* of the embedded store, see agent/store/token.h; NULL: none is known */
    /* The store may seal a token for our user (agent/sys/munge.h); it is asked for that where no
     * token is known. Who opens it puts it there: "" none yet. NULL: it is not asked. */
    char (*sealed)[TOKEN_MAX + 1];
};

/* The token to show with a request; NULL: none. */
const char *store_access_token(const struct store_access *a);
