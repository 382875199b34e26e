/* carrier: how the harness speaks with a node helper, over two descriptors: a socket that is both,
 * two pipes, the standard streams of whatever command reaches the helper. One JSON object a frame
 * (frames.h). A carrier passes no descriptors and shares no memory, so that it does not matter where
 * the other end is.
 *
 * What one kernel can give and no wire goes beside it: a helper on the harness's own host has a
 * lane besides, a SEQPACKET socket. A message then says `fds`, how many descriptors it has brought
 * there. Where there is no lane, messages say the same in words (node_helper.h).
 *
 * Nothing blocks: what the other end does not take waits here. Callbacks come from the loop, or from
 * carrier_read; each of them may free the carrier. */
#pragma once

#include "base/sys/loop.h"
#include "harness/carrier/channel.h"

struct carrier;

struct carrier_ends {
    int in, out; /* the same, where it is a socket */
    int lane;    /* -1: none */
};
#define CARRIER_ENDS_NONE ((struct carrier_ends){-1, -1, -1})

struct carrier_listener {
    /* The message stays the carrier's; descriptors of it may be taken. */
    void (*message)(void *arg, struct message *m);
    /* Nothing more comes, which is said once. why->code is -ECONNRESET: the other end has gone;
     * -EPROTO: what came is no message; else a -errno of the descriptor. */
    void (*end)(void *arg, const struct err *why);
    void *arg;
    void (*taken)(void *arg); /* nothing waits for the other end any more. May be NULL */
};

/* Two ends of a carrier with a lane, all close-on-exec. */
int carrier_pair(struct carrier_ends ret[2], struct err *err);
void carrier_ends_close(struct carrier_ends *e);

/* Takes the ends. */
struct carrier *carrier_new(struct loop *l, const struct carrier_ends *ends,
                            const struct carrier_listener *listener);
struct carrier *carrier_free(struct carrier *c); /* NULL is allowed; returns NULL */

/* The text of one object. Descriptors stay the caller's, and have gone when it returns. Returns 0, or
 * -EPIPE: the other end has gone; -EOPNOTSUPP: descriptors, and no lane; -ENOBUFS: the other end has
 * taken nothing for very long; another -errno. */
int carrier_send(struct carrier *c, const struct buf *text, const int *fds, size_t n,
                 struct err *err);
/* Bytes that are no message, for who has asked for them in their place. The same codes. */
int carrier_send_bytes(struct carrier *c, const char *bytes, size_t n, struct err *err);
/* CLOCK_MONOTONIC when what is told now was read; 0: nothing has come yet. */
int64_t carrier_heard_ns(const struct carrier *c);
/* Tells of all that has come by now. */
void carrier_read(struct carrier *c);
/* Waits until the other end has taken what waits; 0, or -ETIME, or -EPIPE. */
int carrier_flush(struct carrier *c, int timeout_ms);
/* The other end sees the end of what we say; what it still says is heard. */
void carrier_shut(struct carrier *c);
size_t carrier_waits(const struct carrier *c); /* bytes that the other end has not taken */
int carrier_in(const struct carrier *c);       /* for who asks whether something has come */
bool carrier_has_lane(const struct carrier *c);
