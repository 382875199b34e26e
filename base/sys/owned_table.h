/* owned_table: a packet filter of this network namespace that belongs to the socket by which it was
 * made (nftables, `flags owner`, Linux 5.12): nobody else can change or remove it, a flush of the
 * whole rule set leaves it, and when its owner is closed or killed the kernel takes it away. It is a
 * table of the family inet, so both IPv4 and IPv6; needs CAP_NET_ADMIN.
 *
 * What goes by the loopback passes, and so do the neighbour solicitations of IPv6: who may still be
 * spoken with has to be found. Only what is sent and received by this host is seen, not what it
 * forwards (containers with a network of their own); RDMA passes by all of it. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A chain at each place where a packet is asked about: before all others, and behind them. */
enum owned_chain { OWNED_IN, OWNED_OUT, OWNED_IN_BEHIND, OWNED_OUT_BEHIND, OWNED_CHAINS_N };

struct owned_rule {
    enum owned_chain chain;
    const char *address;   /* of the other end, IPv4 or IPv6; NULL: any */
    uint16_t theirs, ours; /* ports of TCP and UDP; 0: any, of any protocol */
    enum { OWNED_PASS, OWNED_DROP, OWNED_COUNT } what; /* COUNT: and asks the next rule */
    uint32_t tag; /* its packets are counted under this number; 0: they are not */
};

struct owned_table {
    int nl;        /* -1: none */
    bool made;     /* the kernel has it */
    char name[32]; /* no other table of the host has it */
};
#define OWNED_TABLE_NONE ((struct owned_table){.nl = -1})

/* No rule is in force yet. 0, or -ENOTSUP with the reason and what would help. */
int owned_table_open(struct owned_table *ret, const char *name, struct err *err);
/* These rules in place of those before, from one packet to the next; the first that fits says what
 * becomes of a packet, and what fits none passes. Counting begins anew. 0 or a -errno. */
int owned_table_set(struct owned_table *t, const struct owned_rule *v, size_t n, struct err *err);
/* Calls fn for each rule with a tag; one rule may be several in the kernel. */
int owned_table_count(const struct owned_table *t,
                      void (*fn)(void *arg, uint32_t tag, uint64_t packets), void *arg,
                      struct err *err);
/* The host is as before. */
void owned_table_close(struct owned_table *t);

/* Tries it: a table is made, refused to somebody else, and gone with its owner. 0, or -ENOTSUP. */
int owned_table_check(struct err *err);
