/* descriptors: open files: those that every process has, how many there may be, and how they are
 * handed to another process with a message. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { DESCRIPTORS_MAX = 16 }; /* in one message */

/* What of standard input, output and error was closed when this program was started is /dev/null
 * from here on: the next file would get its number, and what is printed. */
void descriptors_open_standard(void);
/* Writes what is still to be printed, and tells whether all that was ever printed has come there.
 * A reader that has gone has seen enough. */
bool descriptors_flush_stdout(void);

/* As many open files as the system lets this process have. Not for one that starts workers after
 * it: they are to find what they were started with. */
void descriptors_raise_limit(void);

/* Sends len bytes (at least 1) as one message of a Unix socket, with n descriptors that stay the
 * caller's. flags: of sendmsg, MSG_NOSIGNAL is added. Returns 0 or a -errno. */
int descriptors_send(int socket, const void *data, size_t len, const int *fds, size_t n, int flags);
/* Receives such a message without waiting for one. The descriptors, close-on-exec, are the
 * caller's; *n: room for how many, and then how many came, which must fit. Returns how many bytes
 * came (0: the other end is gone) or a -errno. */
ssize_t descriptors_receive(int socket, void *data, size_t size, int *fds, size_t *n);
/* Moves a descriptor to a number from least on: what is held for long must not lie where a standard
 * stream belongs that the caller has closed. Takes fd; returns the new one, -EMFILE where
 * no such number is allowed, or another -errno. */
int descriptors_lift(int fd, int least);
