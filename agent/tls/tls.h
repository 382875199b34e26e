/* tls: the server's side of TLS, 1.2 or newer, for the embedded store. Finds rankrun_tls.so beside
 * the program ($RANKRUN_TLS names another one) and opens it when it is asked for. */
#pragma once

#include "agent/tls/module/module.h"
#include "base/err.h"

#define TLS_VARIABLE "RANKRUN_TLS"
#define TLS_FILE     "rankrun_tls.so"

/* Reads the files once. NULL with err, whose sentence names the file: -EINVAL when one of them
 * cannot be read, is no PEM or does not go with the others, -ENOENT and -ENOEXEC when this rankrun
 * has no TLS. */
struct tls *tls_new(const struct tls_files *files, struct err *err);
/* Connections that are still there go on to their end and tell nobody. NULL is allowed; returns
 * NULL. */
struct tls *tls_free(struct tls *t);

/* A connection without a socket, as evhttp_set_bevcb wants it; freeing it closes the socket. watch
 * is lent and the same for all of t. NULL: no memory. */
struct bufferevent *tls_accept(struct tls *t, struct event_base *base,
                               const struct tls_watch *watch);
