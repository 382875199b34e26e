/* Gives each node and store of a scenario an address and a name, and says where its agents meet. */
#include "base/str.h"
#include "harness/plan/entries.h"

#include <stdio.h>
#include <string.h>

/* PLAN_RESOLVER is 9. 198.18.0.0/15 is set aside for tests of networks (RFC 2544) and never routed. */
enum { HOST_STORE = 2, HOST_FIRST_NODE = 10 };

static void place_node(struct plan_node *n, unsigned char host) {
    snprintf(n->addr, sizeof(n->addr), "198.18.0.%u", host);
    /* Locally administered, and readable next to the address. */
    const unsigned char mac[6] = {0x02, 0x00, 198, 18, 0, host};
    memcpy(n->mac, mac, sizeof(mac));
}

/* Nodes that are there for the store alone. */
static int count_stores(const struct scenario *s) {
    bool rankrun = str_eq(s->job.launcher, "rankrun");
    switch (s->cluster.store) {
    case STORE_ETCD_3:
        return 3;
    case STORE_ETCD:
        return 1;
    case STORE_NONE:
        return 0;
    case STORE_EMBEDDED:
    default: /* one node that the job can only be alone on keeps rankrun's store in the agent */
        return rankrun && !scenario_store_host(s);
    }
}

static void put_stores(struct plan *p, int n) {
    for (int i = 0; i < n; i++) {
        struct plan_node *node = &p->nodes[p->scenario->cluster.nodes + i];
        node->name = n == 1 ? "store" : arena_printf(&p->arena, "store-%d", i);
        node->index = -1;
        node->is_store = true;
        node->on_at_start = true;
        place_node(node, (unsigned char)(HOST_STORE + i));
    }
}

/* Members of one etcd: rankrun tries the next when one does not answer, the others know one. */
static const char *endpoint_of(const struct plan *p, struct arena *a) {
    const struct scenario *s = p->scenario;
    size_t stores = p->nodes_n - (size_t)s->cluster.nodes;
    bool rankrun = str_eq(s->job.launcher, "rankrun"), template = !rankrun && !p->backend;
    const struct plan_node *first = &p->nodes[s->cluster.nodes];
    if (stores == 3 && rankrun)
        return arena_printf(a, "%s:%d,%s:%d,%s:%d", plan_node_host(&first[0]), PLAN_STORE_PORT,
                            plan_node_host(&first[1]), PLAN_STORE_PORT, plan_node_host(&first[2]),
                            PLAN_STORE_PORT);
    if (stores)
        return arena_printf(a, "%s:%d", plan_node_host(first), PLAN_STORE_PORT);
    const char *on = s->cluster.store_on ? s->cluster.store_on : "n0";
    if (template || s->cluster.store_on || (!rankrun && s->cluster.store != STORE_NONE))
        return arena_printf(a, "%s:%d", plan_node_host(plan_find_node(p, on)), PLAN_STORE_PORT);
    return NULL;
}

static const char *backend_of(const struct scenario *s) {
    bool etcd = s->cluster.store == STORE_ETCD || s->cluster.store == STORE_ETCD_3;
    if (str_eq(s->job.launcher, "template"))
        return NULL;
    if (s->job.rdzv_backend)
        return s->job.rdzv_backend;
    if (str_eq(s->job.launcher, "torchrun"))
        return etcd ? "etcd-v2" : "c10d";
    return etcd ? "etcd-v3" : "embedded";
}

void topology_make(struct plan *p) {
    const struct scenario *s = p->scenario;
    int stores = count_stores(s);
    p->nodes_n = (size_t)(s->cluster.nodes + stores);
    p->nodes = arena_array(&p->arena, struct plan_node, p->nodes_n);
    for (int i = 0; i < s->cluster.nodes; i++) {
        struct plan_node *n = &p->nodes[i];
        n->name = arena_printf(&p->arena, "n%d", i);
        n->index = i;
        n->on_at_start = i < s->cluster.start;
        n->rootfs = p->rootfs;
        place_node(n, (unsigned char)(HOST_FIRST_NODE + i));
    }
    put_stores(p, stores);
    p->backend = backend_of(s);
    p->endpoint = endpoint_of(p, &p->arena);
    if (!p->endpoint)
        p->backend = NULL;
}

bool plan_serves_store(const struct plan *p, const struct plan_node *n) {
    const char *host = scenario_store_host(p->scenario);
    return n->is_store || (host && str_eq(n->name, host));
}

void topology_move(struct plan *p, const char *prefix) {
    for (size_t i = 0; i < p->nodes_n; i++) {
        struct plan_node *n = &p->nodes[i];
        const char *last = strrchr(n->addr, '.');
        snprintf(n->addr, sizeof(n->addr), "%s",
                 arena_printf(&p->arena, "%s%s", prefix, last ? last : ".0"));
        n->by_address = true;
    }
    p->endpoint = endpoint_of(p, &p->arena);
}

void topology_move_to_hosts(struct plan *p) {
    for (size_t i = 0; i < p->nodes_n; i++) {
        struct plan_node *n = &p->nodes[i];
        str_copy(n->addr, sizeof(n->addr), n->host->address);
        n->by_address = true;
    }
    p->endpoint = endpoint_of(p, &p->arena);
}
