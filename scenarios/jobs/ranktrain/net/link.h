/* link: TCP connections whose every wait has a deadline and can be called off.
 *
 * All descriptors are non-blocking and close-on-exec. wake_fd is the descriptor whose readability
 * means "stop waiting" (a pending SIGTERM); -1: none. Deadlines are those of deadline.h. Common
 * errors: -ETIMEDOUT, -ECANCELED (woken), -ECONNRESET (the peer is gone). */
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct link_wait {
    int64_t deadline_ns;
    int wake_fd;
};

enum { LINK_NAME = 80 };

struct link_address {
    struct sockaddr_storage addr;
    socklen_t length;
};

/* Waits until fd is ready for `events` of poll(). Returns 0 or an error without a sentence. */
int link_ready(int fd, short events, const struct link_wait *w);

/* One attempt. Returns a descriptor; -ECONNREFUSED and the like when nobody is there. */
int link_connect(const struct link_address *to, const struct link_wait *w);

/* The address of a name or number; the resolver's own time is not bounded by the deadline. Returns
 * 0, or -EAGAIN when the name is not known (yet). */
int link_resolve(const char *host, int port, struct link_address *ret, struct err *err);

int link_send(int fd, const void *p, size_t n, const struct link_wait *w);
int link_receive(int fd, void *p, size_t n, const struct link_wait *w);

/* "10.0.0.2:29500" */
const char *link_name(const struct link_address *a, char ret[LINK_NAME]);
int link_peer(int fd, struct link_address *ret);
int link_port(int fd); /* of its own end */
int link_port_of(const struct link_address *a);
void link_set_port(struct link_address *a, int port);
int link_is_loopback(const struct link_address *a);

/* Closes *fd if it is open and makes it -1. */
void link_close(int *fd);
