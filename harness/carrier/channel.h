/* channel: one JSON object a message, with descriptors, over a SEQPACKET Unix socket: how the
 * harness speaks with its node helpers and its wire. A message too long for a packet travels in a
 * memfd, so there is no limit but memory. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"

enum { CHANNEL_FDS_MAX = 4 };

struct message {
    struct arena arena;
    const struct json *json;
    int fds[CHANNEL_FDS_MAX]; /* close-on-exec; -1: none or taken */
};

/* Two ends, both close-on-exec and blocking. */
int channel_pair(int ret[2], struct err *err);

/* The text of buf; the descriptors stay the caller's. Returns 0 or a -errno (-EPIPE: the other end
 * is gone; -EAGAIN on a non-blocking end: it does not read). */
int channel_send(int fd, const struct buf *text, const int *fds, size_t fds_n, struct err *err);

/* Never blocks. Returns 1 with a message for message_fini; 0: none is waiting; -ECONNRESET: the
 * other end is gone; another -errno. */
int channel_receive(int fd, struct message *ret, struct err *err);
void message_fini(struct message *m);              /* closes what was not taken */
int message_take_fd(struct message *m, size_t at); /* the caller's now; -1: there was none */
