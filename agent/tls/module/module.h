/* module: what rankrun_tls.so offers to a rankrun that serves its store over TLS. The file is
 * loaded when a certificate was given and never otherwise: OpenSSL would cost every agent
 * milliseconds and megabytes.
 *
 * libevent's functions are the program's, which exports those that the file asks for (Makefile).
 * Inside is only libevent's bufferevent over OpenSSL, so both must be built with the same libevent:
 * that is what libevent is compared for. */
#pragma once

#include "base/err.h"

#include <stdint.h>

/* Raised with every change of the structs here. */
enum { TLS_VERSION = 1 };
#define TLS_SYMBOL "rankrun_tls"

struct bufferevent;
struct event_base;
struct tls;

/* Files in PEM; the strings are lent. */
struct tls_files {
    const char *cert;      /* ours and those between it and an authority; NULL: no TLS */
    const char *key;       /* NULL: it is in cert, too */
    const char *client_ca; /* who signs the clients' certificates; NULL: they need none */
};

/* What becomes of connections: called from inside their callbacks, so nothing may be freed there;
 * gone as the last of one, when it is being freed. why is a constant. */
struct tls_watch {
    void (*gone)(void *arg, struct bufferevent *b);
    void (*done)(void *arg, struct bufferevent *b);
    void (*failed)(void *arg, struct bufferevent *b, const char *why);
    void *arg;
    const char *plain; /* the whole answer for who speaks HTTP without TLS */
};

struct tls_module {
    int version;
    uint32_t libevent; /* LIBEVENT_VERSION_NUMBER */
    struct tls *(*open)(const struct tls_files *files, struct err *err);
    struct tls *(*close)(struct tls *t);
    struct bufferevent *(*accept)(struct tls *t, struct event_base *base,
                                  const struct tls_watch *watch);
};
