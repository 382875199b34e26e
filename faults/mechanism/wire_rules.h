/* wire_rules: which frames the wire lets through. Pure: no socket, no clock.
 *
 * Ports are numbered by the caller. Traffic is sorted into planes by its TCP or UDP ports; a cut
 * names a pair of ports in one direction and the planes it closes. ARP has no plane: it passes
 * until all planes of a direction are closed, or else a cut of one plane would starve the rest. */
#pragma once

#include "faults/mechanism/frame.h"
#include "faults/mechanism/impairment.h"

#include <stdbool.h>

enum { WIRE_PORTS_MAX = 64 };

struct wire_rules {
    unsigned char cut[WIRE_PORTS_MAX][WIRE_PORTS_MAX]; /* [from][to]: planes that are closed */
    bool silent[WIRE_PORTS_MAX];                       /* nothing in, nothing out */
    uint16_t store_port;                               /* 0: none */
    uint16_t store_peer_port;           /* where its members speak with each other, 0: nowhere */
    unsigned char bootstrap[65536 / 8]; /* one bit a port */
};

void wire_rules_bootstrap(struct wire_rules *r, uint16_t tcp_port);
bool wire_rules_is_bootstrap(const struct wire_rules *r, uint16_t tcp_port);
void wire_rules_silence(struct wire_rules *r, int port, bool on);
/* Opens or closes planes from one port to another; the other direction is a call of its own. */
void wire_rules_cut(struct wire_rules *r, int from, int to, unsigned planes, bool on);
/* Opens all that was closed. */
void wire_rules_clear(struct wire_rules *r);
/* Closes planes and direction of `how` between all ports of different groups. group[i] < 0: in
 * none, untouched. */
void wire_rules_partition(struct wire_rules *r, const int group[WIRE_PORTS_MAX],
                          const struct impairment *how);

/* The plane of a frame; 0: none (ARP and what is not IP). */
unsigned wire_rules_plane(const struct wire_rules *r, const struct frame *f);
bool wire_rules_pass(const struct wire_rules *r, int from, int to, unsigned plane);
