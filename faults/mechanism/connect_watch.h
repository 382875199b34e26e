/* connect_watch: every connection that a program and its children begin, seen before it begins
 * (seccomp user notification, Linux 5.0). It is how a cut reaches sockets that did not exist when
 * it was made: who calls connect() waits until the watcher lets it go on.
 *
 * What is watched can gain no privileges by an exec any more (NO_NEW_PRIVS: no sudo). When the
 * watcher has gone, connect() fails with ENOSYS; so it must live as long as what it watches. What
 * makes no call of that name, such as io_uring, is not seen. */
#pragma once

#include "base/err.h"

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

struct connect_call {
    uint64_t id;
    pid_t pid; /* of the process; its number for the socket */
    int fd;
    struct sockaddr_storage to; /* ss_family 0: could not be read */
};

/* For a child before its exec: watches it and all that it will start, and sends the descriptor of
 * the watch through `to`, a Unix socket. Only async-signal-safe calls. 0 or a -errno. */
int connect_watch_install(int to);
/* The descriptor that was sent; readable when a call waits. Or a -errno. */
int connect_watch_take(int from);

/* The next call that waits. 1; 0: it has gone; a -errno: nothing is watched any more. */
int connect_watch_next(int watch, struct connect_call *ret);
void connect_watch_pass(int watch, uint64_t id); /* lets it go on */

/* Tries to watch a child. 0, or -ENOTSUP with the reason and what would fix it. */
int connect_watch_check(struct err *err);
