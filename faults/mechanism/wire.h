/* wire: the switch on which all nodes hang, one port each, and the place where their frames are
 * decided about.
 *
 * Whose card has which address is told, not learned. A frame for one address goes to its port, a
 * broadcast to all others; one for nobody is dropped. A change of the rules holds from the next
 * frame on. A port whose card is gone keeps its number, its address and its counters: frames
 * towards it are counted as dropped.
 *
 * Runs on a loop in the network namespace in which the ports are added; single-threaded. */
#pragma once

#include "base/sys/loop.h"
#include "base/sys/packet_port.h"
#include "faults/mechanism/capture.h"
#include "faults/mechanism/impairer.h"
#include "faults/mechanism/resolver.h"
#include "faults/mechanism/store_gate.h"
#include "faults/mechanism/wire_rules.h"

struct wire;

struct wire_port_counters { /* in: towards the node */
    uint64_t frames_in, bytes_in, frames_out, bytes_out;
    /* By the rules and by a link that flaps, not what else an impairment drops: of a pair both the
     * sender's and the other's. */
    uint64_t dropped_in, dropped_out;
    uint64_t data_bytes_out;         /* TCP payload of the data plane, whatever became of it */
    uint64_t cut_to[WIRE_PORTS_MAX]; /* from this node to that one, dropped by a cut */
    uint64_t passed_to[PLANES_N][WIRE_PORTS_MAX]; /* likewise, passed on, by plane */
    uint64_t bytes_to[WIRE_PORTS_MAX];            /* bytes of all that was passed on */
    /* What impairments did to frames from this node to that one. */
    uint64_t done_to[DEEDS_N][WIRE_PORTS_MAX];
    uint64_t lost; /* by the wire itself, because it was too slow */
};

/* The card of a port has gone, with the namespace its other end was in. */
typedef void wire_gone_fn(void *arg, int port);

/* A node asks the store for something that is watched; id: of one that waits for wire_pass, else 0. */
struct wire_request {
    int from, to; /* ports */
    enum store_operation operation;
    uint64_t id;
};
typedef void wire_request_fn(void *arg, const struct wire_request *r);

struct wire *wire_new(struct loop *l, wire_gone_fn *gone, void *arg);
struct wire *wire_free(struct wire *w); /* NULL is allowed; returns NULL. Removes no card. */
void wire_queue(struct wire *w, enum packet_queue queue); /* of ports added from now on */
struct wire_rules *wire_rules(struct wire *w);
/* The frames of a port go into a file, too: what its card sends, and what it is given. The wire's
 * now. */
void wire_capture(struct wire *w, int port, struct capture *c);
void wire_flush(struct wire *w);                /* what was captured can be read */
struct resolver *wire_resolver(struct wire *w); /* a host of its own, once it has an address */
/* These impairments are in force from now on, and no others; false: there are too many. */
bool wire_impair(struct wire *w, const struct impaired *list, size_t n);

/* Sets of 1 << STORE_*, as store_gate_watch; fn is told. */
void wire_watch_store(struct wire *w, unsigned told, unsigned held, wire_request_fn *fn);
void wire_pass(struct wire *w, uint64_t id); /* it meets what is in force by now */
void wire_pass_all(struct wire *w);          /* and nothing is watched any more */

/* Makes the pair of cards: "eth0" with this address in the node's namespace (an fd), the other end
 * here. A port that is there already gets the new card in place of the old, which is removed. */
int wire_add_port(struct wire *w, int port, const unsigned char mac[6], int netns, struct err *err);
struct wire_port_counters wire_count(struct wire *w, int port);
