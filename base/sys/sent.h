/* sent: when a message was sent through a socket, as the kernel says, however late it is read. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

/* Control room for the moment of one message. */
enum { SENT_ROOM = 128 };

/* From now on the kernel says it of each message. */
void sent_ask(int socket);
/* CLOCK_MONOTONIC; now, where it is not said. Descriptors that came along are closed. */
int64_t sent_ns(struct msghdr *m);
