/* packet_port: whole Ethernet frames of one network card, see packet(7).
 *
 * Every frame comes and goes with a virtio_net_hdr in front (10 bytes), so that segmentation and
 * checksums that the sender left to the card stay undone: a frame may be 64 KiB long and is sent on
 * as it came. Frames that we send are not seen again. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The longest message: header, Ethernet, a segment of 64 KiB. */
enum { PACKET_PORT_HEADER = 10, PACKET_PORT_MAX = 10 + 14 + 4 + 65536 };

/* Where frames wait to be read. A socket's queue is bounded in bytes, which some kernels keep so
 * small for ordinary users that it holds a handful of long segments; a ring of slots, each long
 * enough for the longest, loses none of them, but every short frame takes a slot as well. */
enum packet_queue { PACKET_QUEUE_AUTO, PACKET_QUEUE_SOCKET, PACKET_QUEUE_RING };

struct packet_port {
    int fd;              /* to wait on; non-blocking, close-on-exec; -1: closed */
    unsigned char *ring; /* NULL: a socket's queue */
    unsigned next;       /* the slot to be filled next */
    bool held;           /* the slot before it is the reader's still */
    uint32_t torn;       /* frames longer than a slot, not yet told */
};

#define PACKET_PORT_CLOSED ((struct packet_port){.fd = -1})

/* Needs CAP_NET_RAW over the network namespace, and stays in the one it was opened in. The card
 * must be on. */
int packet_port_open(struct packet_port *ret, int ifindex, enum packet_queue queue,
                     struct err *err);
void packet_port_close(struct packet_port *p); /* leaves PACKET_PORT_CLOSED */

/* Returns the length of the next message; 0: none is waiting; -ENETDOWN: the card is gone; another
 * -errno. *ret is the message, in buf (of PACKET_PORT_MAX bytes) or in the ring, until the next
 * call. */
ssize_t packet_port_read(struct packet_port *p, unsigned char *buf, const unsigned char **ret);
/* Sends a message as it was read. Returns 0, or a -errno: the frame is lost. */
int packet_port_write(struct packet_port *p, const unsigned char *message, size_t len);

/* How many frames could not be queued since the last call. */
uint32_t packet_port_lost(struct packet_port *p);
