/* packets: what a card would have made of a message that its sender left to it: packets no longer
 * than a segment, with their checksums. IPv4 with TCP, and UDP that is cut into datagrams by the
 * card; of others only the checksum is made. Pure. */
#pragma once

#include "faults/mechanism/frame.h"

/* The header in front of a message of base/sys/packet_port.h; all 0: nothing is left to do. */
enum { PACKETS_HEADER = 10 };

/* One packet, with a header of zeros in front; it is gone when this returns. */
typedef void packets_fn(void *arg, unsigned char *message, size_t len);

/* buf: as long as the message. */
void packets_each(const unsigned char *message, size_t len, unsigned char *buf, packets_fn *fn,
                  void *arg);

/* Changes one bit of the payload, of all that the frame carries the one of this number, modulo
 * their count. mend: and the checksum to one that is right. bytes: as they were parsed. */
void packets_flip(unsigned char *bytes, const struct frame *f, uint64_t bit, bool mend);

/* Makes the RST that ends the connection of this segment, for whom the segment is, or back, for
 * whom it is from. Returns the length of the message in buf, of PACKETS_RESET_MAX bytes. */
enum { PACKETS_RESET_MAX = PACKETS_HEADER + 54 };
size_t packets_reset(const unsigned char *bytes, const struct frame *f, bool back,
                     unsigned char *buf);

/* Makes the datagram that answers this one of UDP, back to whom it is from. Returns the length of
 * the message in buf, of PACKETS_DATAGRAM and `len` more bytes. */
enum { PACKETS_DATAGRAM = PACKETS_HEADER + 42 };
size_t packets_datagram_back(const unsigned char *bytes, const struct frame *f,
                             const unsigned char *payload, size_t len, unsigned char *buf);
