#include "faults/mechanism/frame.h"

#include "faults/mechanism/big_endian.h"

enum { IP_LEAST = 20, TCP_LEAST = 20, UDP = 8, PROTOCOL_TCP = 6, PROTOCOL_UDP = 17 };

static void parse_transport(const unsigned char *p, size_t len, int protocol, struct frame *f) {
    size_t header = 0;
    if (protocol == PROTOCOL_TCP && len >= TCP_LEAST)
        header = (size_t)(p[12] >> 4) * 4;
    else if (protocol == PROTOCOL_UDP && len >= UDP)
        header = UDP;
    if (header < UDP || header > len)
        return;
    f->kind = protocol == PROTOCOL_TCP ? FRAME_TCP : FRAME_UDP;
    f->source_port = be16(p);
    f->destination_port = be16(p + 2);
    f->payload = (uint32_t)(len - header);
    f->transport = f->data;
    f->data += header;
    if (f->kind != FRAME_TCP)
        return;
    f->sequence = be32(p + 4);
    f->acknowledged = be32(p + 8);
    f->tcp_flags = p[13];
}

static void parse_ip(const unsigned char *p, size_t len, struct frame *f) {
    if (len < IP_LEAST || p[0] >> 4 != 4)
        return;
    size_t header = (size_t)(p[0] & 15) * 4, total = be16(p + 2);
    if (header < IP_LEAST || header > len)
        return;
    f->kind = FRAME_IP;
    f->data = FRAME_ETHERNET + header;
    if (be16(p + 6) & 0x1fff) /* a later fragment has no ports */
        return;
    /* The total leaves out what pads a short frame; it is 0 in a segment longer than it can say. */
    if (total >= header && total < len)
        len = total;
    f->end = FRAME_ETHERNET + len;
    parse_transport(p + header, len - header, p[9], f);
}

bool frame_parse(const void *bytes, size_t len, struct frame *ret) {
    const unsigned char *p = bytes;
    if (len < FRAME_ETHERNET)
        return false;
    *ret = (struct frame){.destination = p, .source = p + 6, .group = p[0] & 1, .end = len};
    uint16_t type = be16(p + 12);
    if (type == 0x0806)
        ret->kind = FRAME_ARP;
    else if (type == 0x0800)
        parse_ip(p + FRAME_ETHERNET, len - FRAME_ETHERNET, ret);
    return true;
}
