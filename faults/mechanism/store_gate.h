/* store_gate: where requests to the store wait on the wire until somebody lets them go on. Who sent
 * one waits for an answer, and the store has not heard of it.
 *
 * What comes behind it on its connection waits with it, in order. Single-threaded. */
#pragma once

#include "faults/mechanism/store_operation.h"
#include "faults/mechanism/wire_rules.h"

struct store_gate;

struct gate_frame { /* one that is on its way to the store */
    int from, to;   /* ports */
    unsigned plane;
    const struct frame *frame;
    const unsigned char *message; /* the frame with what the card says of it, in front */
    size_t len;
};

struct gate_verdict {
    enum store_operation operation; /* that was asked for, and is watched; or NONE */
    bool kept;                      /* it waits: it is copied, and goes no further now */
    uint64_t id;                    /* of the operation, if it waits */
};

struct store_gate *store_gate_new(void);
struct store_gate *store_gate_free(struct store_gate *g); /* NULL is allowed; returns NULL */
/* Sets of 1 << STORE_*: which are told, and which of these wait. Who waits already goes on waiting. */
void store_gate_watch(struct store_gate *g, unsigned told, unsigned held);
bool store_gate_is_open(const struct store_gate *g); /* nothing is watched, and nobody waits */
struct gate_verdict store_gate_see(struct store_gate *g, const struct gate_frame *f);
/* Gives back what has waited, in order; the frames are the gate's, and gone when this returns. One
 * that waits no more is no matter. */
typedef void store_gate_fn(void *arg, const struct gate_frame *f);
void store_gate_pass(struct store_gate *g, uint64_t id, store_gate_fn *fn, void *arg);
/* All that wait, and nothing is watched any more. */
void store_gate_open(struct store_gate *g, store_gate_fn *fn, void *arg);
