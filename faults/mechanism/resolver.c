#include "faults/mechanism/resolver.h"

#include "faults/mechanism/big_endian.h"
#include "faults/mechanism/packets.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { DNS_PORT = 53, DNS_HEADER = 12, NAME_TEXT_MAX = 256, ARP_FRAME = 60, ARP_BYTES = 42 };
enum { TYPE_A = 1, TYPE_PTR = 12, CLASS_IN = 1, TTL_S = 0 };
enum { RCODE_NONE, RCODE_FORMAT, RCODE_SERVFAIL, RCODE_NXDOMAIN, RCODE_NOT_IMPLEMENTED, REFUSED };

bool resolver_is_meant(const struct resolver *r, const unsigned char *bytes,
                       const struct frame *f) {
    if (!r->address)
        return false;
    if (!f->group)
        return memcmp(f->destination, r->mac, 6) == 0;
    return f->kind == FRAME_ARP && f->end >= ARP_BYTES && be16(bytes + 20) == 1 &&
           be32(bytes + 38) == r->address;
}

/* ---- what is asked ---- */

/* "n1" of its labels. Returns the place behind it; 0: it is none, or one that points elsewhere. */
static size_t take_name(const unsigned char *bytes, size_t at, size_t end,
                        char ret[NAME_TEXT_MAX]) {
    size_t n = 0;
    while (at < end && bytes[at]) {
        size_t len = bytes[at++];
        if (len > 63 || at + len > end || n + len + 2 > NAME_TEXT_MAX)
            return 0;
        if (n)
            ret[n++] = '.';
        memcpy(ret + n, bytes + at, len);
        n += len;
        at += len;
    }
    ret[n] = '\0';
    return at < end && !memchr(ret, '\0', n) ? at + 1 : 0;
}

/* "10.0.18.198.in-addr.arpa" */
static uint32_t address_of(const char *name) {
    unsigned d, c, b, a;
    int end = 0;
    if (sscanf(name, "%3u.%3u.%3u.%3u.%n", &d, &c, &b, &a, &end) != 4 || !end ||
        strcasecmp(name + end, "in-addr.arpa") != 0 || a > 255 || b > 255 || c > 255 || d > 255)
        return 0;
    return a << 24 | b << 16 | c << 8 | d;
}

static int port_of(const struct resolver *r, const char *name, uint16_t type) {
    uint32_t address = type == TYPE_PTR ? address_of(name) : 0;
    for (int i = 0; i < r->n; i++)
        if (type == TYPE_PTR ? address && r->names[i].address == address
                             : strcasecmp(r->names[i].name, name) == 0)
            return i;
    return -1;
}

bool resolver_reads(const struct resolver *r, const unsigned char *bytes, const struct frame *f,
                    struct resolver_question *ret) {
    char name[NAME_TEXT_MAX];
    *ret = (struct resolver_question){.port = -1};
    if (f->kind != FRAME_UDP || f->destination_port != DNS_PORT || f->end < f->data + DNS_HEADER ||
        bytes[f->data + 2] & 0x80) /* an answer */
        return false;
    size_t at = f->data + DNS_HEADER;
    if (be16(bytes + f->data + 4) != 1 || !(at = take_name(bytes, at, f->end, name)) ||
        at + 4 > f->end)
        return true;
    ret->type = (uint16_t)be16(bytes + at);
    ret->port = port_of(r, name, ret->type);
    ret->end = at + 4;
    return true;
}

bool resolver_can_lie(const struct resolver_question *q) {
    return q->type == TYPE_A;
}

/* ---- what is answered ---- */

static unsigned rcode_of(const unsigned char *dns, const struct resolver_question *q,
                         enum names_fate fate) {
    if (!q->end)
        return RCODE_FORMAT;
    if (dns[2] >> 3 & 15) /* no plain query */
        return RCODE_NOT_IMPLEMENTED;
    return fate == NAMES_SERVFAIL                 ? RCODE_SERVFAIL
           : fate == NAMES_REFUSED                ? REFUSED
           : fate == NAMES_UNKNOWN || q->port < 0 ? RCODE_NXDOMAIN
                                                  : RCODE_NONE;
}

/* One record, of the name that was asked for. Returns its length. */
static size_t put_record(const struct resolver *r, const struct resolver_question *q,
                         uint32_t address, unsigned char *to) {
    const char *name = r->names[q->port].name;
    size_t len = q->type == TYPE_A ? 4 : strlen(name) + 2;
    put16(to, 0xc000 | DNS_HEADER);
    put16(to + 2, q->type);
    put16(to + 4, CLASS_IN);
    put32(to + 6, TTL_S);
    put16(to + 10, (unsigned)len);
    if (q->type == TYPE_A) {
        put32(to + 12, address);
    } else {
        to[12] = (unsigned char)strlen(name);
        memcpy(to + 13, name, strlen(name));
        to[13 + strlen(name)] = 0;
    }
    return 12 + len;
}

size_t resolver_answer(const struct resolver *r, const unsigned char *bytes, const struct frame *f,
                       const struct resolver_question *q, enum names_fate fate, uint32_t address,
                       unsigned char *buf) {
    unsigned char dns[512];
    const unsigned char *asked = bytes + f->data;
    size_t len = q->end ? q->end - f->data : DNS_HEADER;
    if (len + 12 + RESOLVER_NAME_MAX + 2 > sizeof(dns))
        return 0;
    memcpy(dns, asked, len);
    unsigned rcode = rcode_of(asked, q, fate);
    bool has = rcode == RCODE_NONE && (q->type == TYPE_A || q->type == TYPE_PTR);
    dns[2] = (unsigned char)(0x84 | (asked[2] & 0x79)); /* an answer, of who should know */
    dns[3] = (unsigned char)(0x80 | rcode);
    put16(dns + 4, q->end ? 1 : 0);
    put16(dns + 6, has);
    put32(dns + 8, 0);
    if (has)
        len +=
            put_record(r, q, fate == NAMES_WRONG ? address : r->names[q->port].address, dns + len);
    return packets_datagram_back(bytes, f, dns, len, buf);
}

size_t resolver_arp(const struct resolver *r, const unsigned char *bytes, unsigned char *buf) {
    unsigned char *to = buf + PACKETS_HEADER;
    memset(buf, 0, PACKETS_HEADER + ARP_FRAME);
    memcpy(to, bytes + 6, 6);
    memcpy(to + 6, r->mac, 6);
    memcpy(to + 12, bytes + 12, 8); /* ARP, of IPv4 over Ethernet */
    put16(to + 20, 2);
    memcpy(to + 22, r->mac, 6);
    put32(to + 28, r->address);
    memcpy(to + 32, bytes + 22, 10);
    return PACKETS_HEADER + ARP_FRAME;
}
