#include "harness/plan/actions.h"

#include <stdio.h>
#include <string.h>

/* 198.18.0.0/15 is set aside for tests of networks (RFC 2544) and never routed. */
enum { HOST_STORE = 2, HOST_FIRST_NODE = 10 };

static void place_node(struct plan_node *n, unsigned char host) {
    snprintf(n->addr, sizeof(n->addr), "198.18.0.%u", host);
    /* Locally administered, and readable next to the address. */
    const unsigned char mac[6] = {0x02, 0x00, 198, 18, 0, host};
    memcpy(n->mac, mac, sizeof(mac));
}

/* One node that the job can only be alone on keeps its store in the agent. */
static bool is_standalone(const struct scenario *s) {
    return s->cluster.store == STORE_NONE || (s->cluster.nodes == 1 && s->job.max_nodes == 1);
}

void topology_make(struct plan *p) {
    const struct scenario *s = p->scenario;
    bool store = !is_standalone(s);
    p->nodes_n = (size_t)s->cluster.nodes + store;
    p->nodes = arena_array(&p->arena, struct plan_node, p->nodes_n);
    for (int i = 0; i < s->cluster.nodes; i++) {
        struct plan_node *n = &p->nodes[i];
        n->name = arena_printf(&p->arena, "n%d", i);
        n->index = i;
        n->on_at_start = i < s->cluster.start;
        n->rootfs = p->rootfs;
        place_node(n, (unsigned char)(HOST_FIRST_NODE + i));
    }
    if (!store)
        return;
    struct plan_node *n = &p->nodes[s->cluster.nodes];
    n->name = "store";
    n->index = -1;
    n->is_store = true;
    n->on_at_start = true;
    place_node(n, HOST_STORE);
    p->endpoint = arena_printf(&p->arena, "store:%d", PLAN_STORE_PORT);
}
