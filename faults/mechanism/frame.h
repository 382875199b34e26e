/* frame: what the wire must know of an Ethernet frame to decide about it. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum frame_kind { FRAME_OTHER, FRAME_ARP, FRAME_IP, FRAME_TCP, FRAME_UDP };

struct frame {
    const unsigned char *destination, *source; /* 6 bytes each, in the frame */
    bool group;                                /* broadcast or multicast */
    enum frame_kind kind;                      /* FRAME_IP: IPv4, but neither TCP nor UDP */
    uint16_t source_port, destination_port;    /* TCP, UDP */
    uint32_t payload; /* bytes behind the TCP or UDP header; a segment left to the card counts whole
                       */
};

/* Returns false when it is no Ethernet frame. Later fragments of a datagram are FRAME_IP. */
bool frame_parse(const void *bytes, size_t len, struct frame *ret);
