/* socket_cut: a network cut at the sockets of the processes that use it, for nodes that have no
 * network of their own.
 *
 * A copy of the socket is taken out of its process (pidfd_getfd, Linux 5.6), and told to take only
 * packets that have travelled no hop at all (IP_MINTTL 255; packets start at 64): the kernel drops
 * all that comes, without an answer, and counts it (SO_MEMINFO). That is open to whoever may trace
 * the process; it needs no capability, unlike a packet filter. A connection is cut in both
 * directions by doing so at both of its ends; healed, it goes on by retransmission. TCP only. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* A copy of the descriptor fd of the process behind pidfd, or a -errno. */
int socket_take(int pidfd, int fd);
/* 0 or a -errno. */
int socket_silence(int fd, bool on);
/* Undoes it where it was done, and leaves every other socket alone. */
void socket_mend(int fd);
/* How many packets the kernel has dropped at this socket; 0 also when it does not tell. */
uint32_t socket_drops(int fd);
/* How many segments a connection has taken in, those without data too; what is dropped here is not
 * among them. -ENOTSUP: it is no connection, or the kernel does not tell. */
int64_t socket_taken_in(int fd);

/* Tries all of it on a child. 0, or -ENOTSUP with the reason and what would fix it. */
int socket_cut_check(struct err *err);
