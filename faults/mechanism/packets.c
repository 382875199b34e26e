#include "faults/mechanism/packets.h"

#include "faults/mechanism/big_endian.h"

#include <linux/virtio_net.h>
#include <string.h>

/* Missing from the headers of some distributions; in the kernel since 6.2. */
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

enum { PROTOCOL_TCP = 6, PROTOCOL_UDP = 17, TCP_HEADER = 20, UDP_HEADER = 8, IP_HEADER = 20 };

/* ---- checksums, RFC 1071 ---- */

static uint32_t sum(const unsigned char *p, size_t len, uint32_t begin) {
    uint64_t s = begin;
    for (; len > 1; len -= 2, p += 2)
        s += be16(p);
    if (len)
        s += (unsigned)p[0] << 8;
    while (s >> 16)
        s = (s & 0xffff) + (s >> 16);
    return (uint32_t)s;
}

static void sum_ip(unsigned char *ip) {
    put16(ip + 10, 0);
    put16(ip + 10, ~sum(ip, (size_t)(ip[0] & 15) * 4, 0) & 0xffff);
}

static unsigned char *checksum_of(unsigned char *bytes, const struct frame *f) {
    return bytes + f->transport + (f->kind == FRAME_TCP ? 16 : 6);
}

static void sum_transport(unsigned char *bytes, const struct frame *f) {
    unsigned char *ip = bytes + FRAME_ETHERNET, *at = checksum_of(bytes, f);
    size_t len = f->end - f->transport;
    uint32_t s = (f->kind == FRAME_TCP ? PROTOCOL_TCP : PROTOCOL_UDP) + (uint32_t)len;
    put16(at, 0);
    s = ~sum(bytes + f->transport, len, sum(ip + 12, 8, s)) & 0xffff;
    put16(at, f->kind == FRAME_UDP && s == 0 ? 0xffff : s); /* 0 says that there is none */
}

/* ---- what was left to the card ---- */

struct cutting {
    const unsigned char *bytes; /* of the whole segment */
    struct frame frame;
    struct virtio_net_hdr header;
};

/* What the sender began stands where the checksum belongs: the sum of the pseudo header. */
static void finish_checksum(const struct virtio_net_hdr *h, unsigned char *bytes, size_t len) {
    size_t at = (size_t)h->csum_start + h->csum_offset;
    if (!(h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) || at + 2 > len || h->csum_start > len)
        return;
    put16(bytes + at, ~sum(bytes + h->csum_start, len - h->csum_start, 0) & 0xffff);
}

/* The n'th packet of a segment, `size` bytes of its payload from `offset` on. Returns its length. */
static size_t cut(const struct cutting *c, unsigned n, size_t offset, size_t size,
                  unsigned char *to) {
    const struct frame *f = &c->frame;
    struct frame made = *f;
    unsigned char *ip = to + FRAME_ETHERNET, *transport = to + f->transport;
    memcpy(to, c->bytes, f->data);
    memcpy(to + f->data, c->bytes + f->data + offset, size);
    made.end = f->data + size;
    put16(ip + 2, (unsigned)(made.end - FRAME_ETHERNET));
    put16(ip + 4, be16(ip + 4) + n);
    sum_ip(ip);
    if (f->kind == FRAME_UDP)
        put16(transport + 4, (unsigned)(made.end - f->transport));
    else
        put32(transport + 4, f->sequence + (uint32_t)offset);
    if (f->kind == FRAME_TCP && offset + size < f->payload)
        transport[13] &= (unsigned char)~(TCP_FIN | TCP_PSH);
    sum_transport(to, &made);
    return made.end;
}

static bool is_cut(const struct cutting *c) {
    unsigned type = c->header.gso_type & ~(unsigned)VIRTIO_NET_HDR_GSO_ECN;
    bool known = (type == VIRTIO_NET_HDR_GSO_TCPV4 && c->frame.kind == FRAME_TCP) ||
                 (type == VIRTIO_NET_HDR_GSO_UDP_L4 && c->frame.kind == FRAME_UDP);
    return known && c->header.gso_size && c->frame.payload > c->header.gso_size;
}

void packets_each(const unsigned char *message, size_t len, unsigned char *buf, packets_fn *fn,
                  void *arg) {
    struct cutting c = {.bytes = message + PACKETS_HEADER};
    unsigned char *to = buf + PACKETS_HEADER;
    memcpy(&c.header, message, PACKETS_HEADER);
    memset(buf, 0, PACKETS_HEADER);
    if (!frame_parse(c.bytes, len - PACKETS_HEADER, &c.frame) || !is_cut(&c)) {
        memcpy(to, c.bytes, len - PACKETS_HEADER);
        finish_checksum(&c.header, to, len - PACKETS_HEADER);
        fn(arg, buf, len);
        return;
    }
    unsigned n = 0;
    for (size_t offset = 0, size; offset < c.frame.payload; offset += size) {
        size = c.frame.payload - offset;
        size = size > c.header.gso_size ? c.header.gso_size : size;
        fn(arg, buf, PACKETS_HEADER + cut(&c, n++, offset, size, to));
    }
}

/* ---- what is done to them ---- */

void packets_flip(unsigned char *bytes, const struct frame *f, uint64_t bit, bool mend) {
    size_t i = f->data + bit / 8 % (f->end - f->data);
    bytes[i] ^= (unsigned char)(1U << bit % 8);
    if (mend && f->transport && be16(checksum_of(bytes, f)))
        sum_transport(bytes, f);
}

/* Ethernet and IP of a packet that answers a frame, or goes on in its place. */
static void put_headers(const unsigned char *bytes, const struct frame *f, bool back, int protocol,
                        size_t len, unsigned char *to) {
    const unsigned char *ip = bytes + FRAME_ETHERNET;
    unsigned char *to_ip = to + FRAME_ETHERNET;
    memcpy(to, back ? f->source : f->destination, 6);
    memcpy(to + 6, back ? f->destination : f->source, 6);
    memcpy(to + 12, bytes + 12, 2);
    to_ip[0] = 0x45;
    put16(to_ip + 2, (unsigned)(IP_HEADER + len));
    to_ip[8] = 64;
    to_ip[9] = (unsigned char)protocol;
    memcpy(to_ip + 12, ip + (back ? 16 : 12), 4);
    memcpy(to_ip + 16, ip + (back ? 12 : 16), 4);
    sum_ip(to_ip);
}

size_t packets_reset(const unsigned char *bytes, const struct frame *f, bool back,
                     unsigned char *buf) {
    const unsigned char *tcp = bytes + f->transport;
    unsigned char *to = buf + PACKETS_HEADER, *to_tcp = to + FRAME_ETHERNET + IP_HEADER;
    uint32_t spans = f->payload + !!(f->tcp_flags & TCP_SYN) + !!(f->tcp_flags & TCP_FIN);
    memset(buf, 0, PACKETS_RESET_MAX);
    put_headers(bytes, f, back, PROTOCOL_TCP, TCP_HEADER, to);
    memcpy(to_tcp, tcp + (back ? 2 : 0), 2);
    memcpy(to_tcp + 2, tcp + (back ? 0 : 2), 2);
    /* Each end takes it only with the number that it waits for, RFC 5961. */
    put32(to_tcp + 4, !back ? f->sequence : f->tcp_flags & TCP_ACK ? f->acknowledged : 0);
    put32(to_tcp + 8, back ? f->sequence + spans : f->acknowledged);
    to_tcp[12] = TCP_HEADER / 4 << 4;
    to_tcp[13] = TCP_RST | TCP_ACK;
    const struct frame made = {.kind = FRAME_TCP,
                               .transport = FRAME_ETHERNET + IP_HEADER,
                               .end = FRAME_ETHERNET + IP_HEADER + TCP_HEADER};
    sum_transport(to, &made);
    return PACKETS_RESET_MAX;
}

size_t packets_datagram_back(const unsigned char *bytes, const struct frame *f,
                             const unsigned char *payload, size_t len, unsigned char *buf) {
    const unsigned char *udp = bytes + f->transport;
    unsigned char *to = buf + PACKETS_HEADER, *to_udp = to + FRAME_ETHERNET + IP_HEADER;
    memset(buf, 0, PACKETS_DATAGRAM);
    put_headers(bytes, f, true, PROTOCOL_UDP, UDP_HEADER + len, to);
    memcpy(to_udp, udp + 2, 2);
    memcpy(to_udp + 2, udp, 2);
    put16(to_udp + 4, (unsigned)(UDP_HEADER + len));
    memcpy(to_udp + UDP_HEADER, payload, len);
    const struct frame made = {.kind = FRAME_UDP,
                               .transport = FRAME_ETHERNET + IP_HEADER,
                               .end = FRAME_ETHERNET + IP_HEADER + UDP_HEADER + len};
    sum_transport(to, &made);
    return PACKETS_DATAGRAM + len;
}
