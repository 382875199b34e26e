/* neighbours: other runs in the store that this run meets in. Nodes of one job that were given
 * different ids wait for each other for ever, each in a run of its own, and nothing in either run
 * can tell. So an agent that has waited for more nodes for some time looks once, with one read of a
 * bounded length over a client of its own, and says which run waits beside it. It is a hint for
 * people; nothing is decided by it. */
#pragma once

#include "agent/core/kv.h"
#include "base/sys/loop.h"

#include <stdbool.h>
#include <stddef.h>

struct neighbours;
struct options;

/* Looks after some times suspect_ns. To be freed when this run has begun its first round. NULL: the
 * store is in this process, so that nobody else can be there. */
struct neighbours *neighbours_new(struct loop *l, const struct options *o, int64_t suspect_ns);
struct neighbours *neighbours_free(struct neighbours *n); /* NULL is allowed; returns NULL */

/* A run with nodes and without a round. */
struct neighbour {
    const char *run_id; /* as its keys have it, not ended by a NUL */
    size_t run_id_len;
    size_t nodes, others; /* others: runs that wait as well */
};

/* Among keys of many runs, in order, and those of ours: the other one that waits with the most
 * nodes. False: none does, or our own run has had a round. */
bool neighbours_find(const struct kv_pair *pairs, size_t n, const char *run_id,
                     struct neighbour *ret);
