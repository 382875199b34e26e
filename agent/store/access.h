/* access: how a store elsewhere is reached beyond its address. Plain data; the strings are lent. */
#pragma once

#include <stdbool.h>

struct store_access {
    bool https;
    bool plain;             /* it was said that it is not https */
    const char *cacert;     /* file, PEM: who signs the store's certificate; NULL: the system's */
    const char *cert, *key; /* files, PEM: ours; NULL: none. key NULL: it is in cert, too */
    const char *user, *password; /* of etcd's v3 authentication; NULL: none */
    const char *token;           /* of the embedded store, see agent/store/token.h; NULL: none */
};
