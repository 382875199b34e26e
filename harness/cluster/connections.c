/* The TCP connections of a node with others, as the kernel lists them; and how they are taken from
 * it. */
#include "harness/cluster/parts.h"

#include "base/mem.h"
#include "base/sys/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

static bool is_of_another(const struct node *n, uint32_t address) {
    const struct cluster *c = n->cluster;
    struct in_addr in;
    for (size_t i = 0; i < c->nodes_n; i++)
        if (c->nodes[i] != n && inet_pton(AF_INET, c->nodes[i]->plan->addr, &in) == 1 &&
            in.s_addr == address)
            return true;
    return false;
}

static bool is_meant(const struct node *n, const struct netlink_connection *c, unsigned planes) {
    const struct frame f = {
        .kind = FRAME_TCP, .source_port = c->local_port, .destination_port = c->remote_port};
    return wire_rules_plane(&n->cluster->sorting, &f) & planes && is_of_another(n, c->remote);
}

/* Those that are meant come first; *ret_n is how many. */
static int list(struct node *n, unsigned planes, struct netlink_connection **ret, size_t *ret_n,
                struct err *err) {
    size_t all, meant = 0;
    if (n->diag < 0)
        return err_say(err, -ENOTSUP, "%s has no network of its own, or is off", n->plan->name);
    int r = netlink_connections(n->diag, ret, &all, err);
    for (size_t i = 0; r == 0 && i < all; i++)
        if (is_meant(n, &(*ret)[i], planes))
            (*ret)[meant++] = (*ret)[i];
    *ret_n = meant;
    return r;
}

int node_connections(struct node *n, unsigned planes, uint64_t **ret, size_t *ret_n,
                     struct err *err) {
    struct netlink_connection *v;
    size_t all;
    int r = list(n, planes, &v, &all, err);
    if (r)
        return r;
    *ret = mem_array(uint64_t, all + 1);
    *ret_n = all;
    for (size_t i = 0; i < all; i++)
        (*ret)[i] = v[i].cookie;
    free(v);
    return 0;
}

int connections_forget(struct node *n, unsigned planes, struct err *err) {
    struct netlink_connection *v;
    size_t all;
    int gone = 0, r = list(n, planes, &v, &all, err);
    if (r)
        return r;
    for (size_t i = 0; i < all && (r == 0 || r == -ENOENT); i++) {
        r = netlink_destroy_connection(n->diag, &v[i], err);
        gone += r == 0;
    }
    free(v);
    return r && r != -ENOENT ? r : gone;
}
