/* Connections that a node had when the fault was about to come in force, and none of which its kernel
 * knows once it is. */
#include "harness/run/evidence/evidence.h"

#include "faults/network/traffic.h"

#include <stdlib.h>
#include <string.h>

struct connections {
    unsigned planes;
    uint64_t *had;
    size_t n;
    bool looked, forgotten; /* once, when the fault was in force */
};

static void *begin(struct run_entry *a, struct bound *b) {
    struct arena *arena = &a->owner->engine->arena;
    struct connections *c = arena_new(arena, struct connections);
    int planes = fault_planes(&a->args, NULL);
    uint64_t *had;
    size_t n;
    if (planes < 0 || node_connections(b->node, (unsigned)planes, &had, &n, NULL) != 0)
        return NULL;
    c->planes = (unsigned)planes;
    c->had = arena_array(arena, uint64_t, n + 1);
    memcpy(c->had, had, n * sizeof(*had));
    c->n = n;
    free(had);
    return c;
}

static bool has_any_of(const struct connections *c, const uint64_t *now, size_t n) {
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < n; k++)
            if (c->had[i] == now[k])
                return true;
    return false;
}

/* Later on connections end by themselves. */
static void look(struct connections *c, struct node *node) {
    uint64_t *now;
    size_t n;
    c->looked = true;
    if (node_connections(node, c->planes, &now, &n, NULL) != 0)
        return;
    c->forgotten = !has_any_of(c, now, n);
    free(now);
}

static bool felt(struct bound *b) {
    struct connections *c = b->known[EVIDENCE_connections_forgotten];
    if (c && c->n && !c->looked)
        look(c, b->node);
    return c && c->forgotten;
}

static void put(const struct run_entry *a, struct json_writer *w) {
    const struct connections *c = a->bound[0].known[EVIDENCE_connections_forgotten];
    json_put_i64(w, "count", (int64_t)c->n);
}

const struct evidence evidence_connections_forgotten = {
    .what = "the node's kernel knows none of the connections that it had",
    .absent = "it had no connection with another node that could be forgotten",
    .unannounced = true,
    .begin = begin,
    .felt = felt,
    .put = put,
};
