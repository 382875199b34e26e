/* descriptors: open files handed to another process with a message, and how many there may be. */
#pragma once

#include <stddef.h>

enum { DESCRIPTORS_MAX = 16 }; /* in one message */

/* As many open files as the system lets this process have. Not for one that starts workers after
 * it: they are to find what they were started with. */
void descriptors_raise_limit(void);

/* Sends len bytes (at least 1) as one message of a Unix socket, with n descriptors that stay the
 * caller's. flags: of sendmsg, MSG_NOSIGNAL is added. Returns 0 or a -errno. */
int descriptors_send(int socket, const void *data, size_t len, const int *fds, size_t n, int flags);
