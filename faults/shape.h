/* shape: a partition by its name alone, as Jepsen has them: which nodes are in which group is drawn
 * from a seed among those that are on. Pure. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHAPE_NODES_MAX = 64 };

/* X(NAME, word, how many nodes it takes, what it is)
 *
 *   isolate    one node | all others
 *   halves     half of them | the rest
 *   majority   more than half | the rest
 *   bridge     half | the rest, and one node in no group, which reaches all
 *   ring       each node a group, in a ring: those that are near each other, a majority with itself,
 *              still reach each other, and no two see the same majority */
#define SHAPES(X)                                                                                  \
    X(ISOLATE, "isolate", 2, "one node cannot reach the others")                                   \
    X(HALVES, "halves", 2, "one half cannot reach the other")                                      \
    X(MAJORITY, "majority", 3, "less than half cannot reach the majority")                         \
    X(BRIDGE, "bridge", 3, "two halves, and one node that reaches both")                           \
    X(RING, "ring", 4, "each reaches a majority, and no two the same")

enum shape {
#define X(name, word, least, text) SHAPE_##name,
    SHAPES(X)
#undef X
        SHAPES_N
};

/* -EINVAL: there is none of that name. */
int shape_of(const char *word, struct err *err);
int shape_least(int shape); /* how many nodes it takes */

/* Nodes that are there for the store alone are in the group named first; with bridge and ring in
 * none, so that everybody reaches them. */
struct shape_nodes {
    const char *v[SHAPE_NODES_MAX], *stores[SHAPE_NODES_MAX];
    size_t n, stores_n;
};
/* Appends "n0,n1|n2". -ENOENT: it takes more nodes. */
int shape_groups(int shape, const struct shape_nodes *nodes, uint64_t seed, struct buf *ret,
                 struct err *err);
/* How far apart groups of a ring of so many may be that still reach each other. */
int shape_ring_reach(int groups);
