/* flow: what the embedded store sends piece by piece, the next one when the kernel has taken the
 * one before. So an answer and a watch cost a piece of memory each, be they ever so long, and only
 * when they are read.
 *
 * The pieces that are not taken are bounded together, agents' and others' apart; who has a next one
 * waits in turn. Who takes none for 10 s is cut off, or for 1 s where others wait for its part. */
#pragma once

#include "base/buf.h"
#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct crowd;
struct evhttp_request;
struct flow;
struct flow_item;
struct loop;

struct flow_ops {
    /* Writes the next piece. False: there is none for now, or it has ended by itself. */
    bool (*produce)(struct flow_item *i, struct buf *out);
    /* The kernel has taken the piece. */
    void (*taken)(struct flow_item *i);
    /* It was cut off: its connection ends, and nothing more is produced. */
    void (*cut)(struct flow_item *i);
};

struct flow_item {
    struct list node; /* it waits, or something of it is being taken */
    struct flow *flow;
    const struct flow_ops *ops;
    struct evhttp_request *req;
    bool agent, waits;
    size_t held; /* bytes of a piece that is being taken */
    int64_t since_ns;
};

struct flow *flow_new(struct loop *l);
struct flow *flow_free(struct flow *f); /* after its items; NULL is allowed */
/* Bytes that are not taken: of agents, of others. */
void flow_limit(struct flow *f, size_t agents_max, size_t others_max);

void flow_add(struct flow *f, struct flow_item *i, const struct flow_ops *ops,
              struct evhttp_request *req, bool agent);
/* It has something to send. Nothing where a piece is being taken: `taken` is when to ask. */
void flow_want(struct flow_item *i);
void flow_remove(struct flow_item *i); /* one that was never added, too */
