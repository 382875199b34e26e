/* tls_client: the client's side of TLS over a connection that is there, by libcurl, which is loaded
 * when it is first asked for and never linked: whoever asks nobody by it pays nothing for it and
 * needs it not. */
#pragma once

#include "base/http/http.h"

#include <sys/types.h>

enum { TLS_CLIENT_HANDSHAKE_MS = 30000 }; /* how long one may take */

struct tls_client;

/* 0, or with a sentence: -ENOENT libcurl is not installed, and what to install; -EIO it does not
 * work. Not for several threads at once. */
int tls_client_load(struct err *err);

/* The handshake has ended: NULL, or why it failed. Called once, from the loop; inside it all may be
 * done. */
typedef void tls_client_fn(void *arg, const char *why);

/* Begins a handshake. fd is connected, and closed by tls_client_free. origin:
 * "https://host:port", what the certificate must be for ("http://": no TLS, all else is the same).
 * way is lent. tls_client_load has been called. Never NULL. */
struct tls_client *tls_client_new(struct loop *l, int fd, const char *origin,
                                  const struct http_way *way, tls_client_fn *fn, void *arg);
struct tls_client *tls_client_free(struct tls_client *c); /* returns NULL */

/* Once it has ended well. As recv(2) and send(2), but -EAGAIN, or -EIO for what tls_client_why
 * says. */
ssize_t tls_client_recv(struct tls_client *c, char *p, size_t size);
ssize_t tls_client_send(struct tls_client *c, const char *p, size_t size);
const char *tls_client_why(const struct tls_client *c);
