/* own_sockets: the TCP sockets of all that descends from the caller, and what of it speaks with
 * others by other means, which whoever cuts connections at sockets does not reach. */
#pragma once

#include "base/texts.h"
#include "harness/host/sockets.h"

#include <stddef.h>

struct own_socket {
    struct socket_line line;
    pid_t pid; /* that has it as fd, one of several perhaps */
    int fd;
};

struct own_sockets {
    struct own_socket *v;
    size_t n;
};

/* Adds to `missed`, which may be NULL, a sentence for each process with a network of its own, with
 * RDMA, or whose files cannot be looked at. */
void own_sockets_take(struct own_sockets *ret, struct texts *missed);
void own_sockets_fini(struct own_sockets *s);
