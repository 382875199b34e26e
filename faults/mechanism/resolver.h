/* resolver: the name server of the wire's network, as one more host on the wire: it answers ARP for
 * its address, and questions by DNS (RFC 1035) over UDP for the names of nodes and, back, for their
 * addresses. Pure: frames in, frames out. */
#pragma once

#include "faults/mechanism/frame.h"
#include "faults/mechanism/impairment.h"

enum { RESOLVER_NAMES_MAX = 64, RESOLVER_NAME_MAX = 64 };
/* The longest message that it makes. */
enum { RESOLVER_ANSWER_MAX = 600 };

struct resolver {
    unsigned char mac[6];
    uint32_t address; /* of it, as all addresses here in the host's order; 0: there is none */
    struct {
        char name[RESOLVER_NAME_MAX];
        uint32_t address;
    } names[RESOLVER_NAMES_MAX]; /* by ports of the wire */
    int n;
};

struct resolver_question {
    uint16_t type;
    int port;   /* of the node whose name or address is asked for; -1: it is nobody's */
    size_t end; /* behind the question, from the frame's first byte; 0: it cannot be read */
};

/* A frame is for it: to its card, or a broadcast that asks who has its address. */
bool resolver_is_meant(const struct resolver *r, const unsigned char *bytes, const struct frame *f);
/* It asks for a name; false: the frame is something else. */
bool resolver_reads(const struct resolver *r, const unsigned char *bytes, const struct frame *f,
                    struct resolver_question *ret);
/* Makes the answer to a question; fate: not NAMES_SILENT. address: that NAMES_WRONG gives. Returns
 * the length of the message in buf, of RESOLVER_ANSWER_MAX bytes, with the header of
 * packets.h in front; 0: the question is too long. */
size_t resolver_answer(const struct resolver *r, const unsigned char *bytes, const struct frame *f,
                       const struct resolver_question *q, enum names_fate fate, uint32_t address,
                       unsigned char *buf);
/* The same for an ARP request. */
size_t resolver_arp(const struct resolver *r, const unsigned char *bytes, unsigned char *buf);
/* NAMES_WRONG changes the answer to such a question; each other fate of a name does to all. */
bool resolver_can_lie(const struct resolver_question *q);
