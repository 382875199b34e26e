/* frame: what the wire must know of an Ethernet frame to decide about it, and to make another of
 * it. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum frame_kind { FRAME_OTHER, FRAME_ARP, FRAME_IP, FRAME_TCP, FRAME_UDP };
enum { FRAME_ETHERNET = 14 };

enum tcp_flag { TCP_FIN = 1, TCP_SYN = 2, TCP_RST = 4, TCP_PSH = 8, TCP_ACK = 16 };

struct frame {
    const unsigned char *destination, *source; /* 6 bytes each, in the frame */
    bool group;                                /* broadcast or multicast */
    enum frame_kind kind;                      /* FRAME_IP: IPv4, but neither TCP nor UDP */
    uint16_t source_port, destination_port;    /* TCP, UDP */
    uint32_t payload; /* bytes behind the TCP or UDP header; a segment left to the card counts whole
                       */
    uint32_t sequence, acknowledged; /* TCP */
    unsigned tcp_flags;              /* TCP_* */
    /* Where its parts begin, in bytes from the frame's first; 0: it has none. Of a FRAME_IP, `data`
     * is all behind the IP header. */
    size_t transport, data;
    size_t end; /* behind its last byte: what pads a short frame does not count */
};

/* Returns false when it is no Ethernet frame. Later fragments of a datagram are FRAME_IP. */
bool frame_parse(const void *bytes, size_t len, struct frame *ret);
