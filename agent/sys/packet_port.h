/* packet_port: whole Ethernet frames of one network card, see packet(7).
 *
 * Every frame comes and goes with a virtio_net_hdr in front (10 bytes), so that segmentation and
 * checksums that the sender left to the card stay undone: a frame may be 64 KiB long and is sent on
 * as it came. Frames that we send are not seen again. */
#pragma once

#include "agent/base/err.h"

#include <stdint.h>
#include <sys/types.h>

/* The longest message: header, Ethernet, a segment of 64 KiB. */
enum { PACKET_PORT_HEADER = 10, PACKET_PORT_MAX = 10 + 14 + 4 + 65536 };

/* A non-blocking, close-on-exec socket on the card, the caller's; needs CAP_NET_RAW over the
 * namespace, and stays in the one it was opened in. */
int packet_port_open(int ifindex, struct err *err);

/* Returns the length of the message read into buf; 0: none is waiting; -ENETDOWN: the card is gone;
 * another -errno. */
ssize_t packet_port_read(int fd, void *buf, size_t size);
/* Sends a message as it was read. Returns 0, or a -errno: the frame is lost. */
int packet_port_write(int fd, const void *message, size_t len);

/* How many frames the kernel could not queue since the last call. */
uint32_t packet_port_lost(int fd);
