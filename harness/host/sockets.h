/* sockets: the TCP sockets of the network one lives in, as /proc/net/tcp and tcp6 list them. */
#pragma once

#include "base/json.h"

#include <stdint.h>
#include <sys/types.h>

struct socket_line {
    char local[64], remote[64]; /* the addresses; one of IPv4 is written as such in tcp6 too */
    uint16_t local_port, remote_port;
    int state;      /* as the kernel numbers them */
    uint64_t inode; /* 0: no descriptor anywhere */
};

enum { SOCKET_ESTABLISHED = 1, SOCKET_SYN_SENT = 2, SOCKET_LISTENS = 10 };

void sockets_each(void (*fn)(void *arg, const struct socket_line *s), void *arg);

/* Every socket of any kind that the process has open. */
void sockets_held(pid_t pid, void (*fn)(void *arg, pid_t pid, int fd, uint64_t inode), void *arg);

/* Appends the member `found` to w: [{local, remote, state}] of the sockets that have this port at
 * one of their ends, and an answer from the other one; at most 64. state: listen | connected (also
 * one that is being closed). Only those that are ours (NULL: all). */
void sockets_put(struct json_writer *w, uint16_t port,
                 bool (*is_ours)(void *arg, const struct socket_line *s), void *arg);
