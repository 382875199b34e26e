#include "harness/cluster/census.h"

#include "base/mem.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

struct census_owner {
    uint64_t inode;
    pid_t pid;
    int fd, node;
};

struct owners {
    struct census_owner *v;
    size_t n;
    int node; /* that is being looked at */
};

static void add_owner(void *arg, pid_t pid, int fd, uint64_t inode) {
    struct owners *o = arg;
    mem_push(o->v, o->n) = (struct census_owner){inode, pid, fd, o->node};
}

static void find_owners(struct owners *o, const struct cluster *c) {
    for (size_t i = 0; i < c->nodes_n; i++) {
        pid_t *pids;
        if (!c->nodes[i]->init.pid)
            continue;
        o->node = (int)i;
        size_t n = process_list_descendants(c->nodes[i]->init.pid, &pids);
        for (size_t j = 0; j < n; j++)
            sockets_held(pids[j], add_owner, o);
        free(pids);
    }
}

static void add_line(void *arg, const struct socket_line *line) {
    struct census *all = arg;
    mem_push(all->v, all->n) = (struct census_socket){.line = *line, .node = -1};
}

static void assign(struct census_socket *s, const struct owners *o) {
    for (size_t i = 0; s->line.inode && i < o->n; i++)
        if (o->v[i].inode == s->line.inode) {
            s->node = o->v[i].node;
            s->pid = o->v[i].pid;
            s->fd = o->v[i].fd;
            return;
        }
}

static bool is_any(const char *address) {
    return str_eq(address, "0.0.0.0") || str_eq(address, "::");
}

static const struct census_socket *find_listener(const struct census *all, const char *address,
                                                 uint16_t port) {
    const struct census_socket *found = NULL;
    for (size_t i = 0; i < all->n; i++) {
        const struct socket_line *l = &all->v[i].line;
        if (l->state != SOCKET_LISTENS || l->local_port != port)
            continue;
        if (str_eq(l->local, address))
            return &all->v[i];
        if (is_any(l->local))
            found = &all->v[i];
    }
    return found;
}

/* Who has not been accepted yet belongs to the listener. */
static void assign_waiting(struct census *all) {
    for (size_t i = 0; i < all->n; i++) {
        struct census_socket *s = &all->v[i];
        if (s->node >= 0 || s->line.inode || s->line.state != SOCKET_ESTABLISHED)
            continue;
        const struct census_socket *l = find_listener(all, s->line.local, s->line.local_port);
        s->node = l ? l->node : -1;
    }
}

void census_take(struct census *ret, const struct cluster *c) {
    struct owners o = {0};
    *ret = (struct census){.cluster = c};
    find_owners(&o, c);
    sockets_each(add_line, ret);
    for (size_t i = 0; i < ret->n; i++)
        assign(&ret->v[i], &o);
    assign_waiting(ret);
    free(o.v);
}

void census_fini(struct census *all) {
    free(all->v);
    all->v = NULL;
    all->n = 0;
}

static int node_at(const struct cluster *c, const char *address) {
    for (size_t i = 0; i < c->nodes_n; i++)
        if (str_eq(c->nodes[i]->plan->addr, address))
            return (int)i;
    return -1;
}

int census_peer(const struct census *all, const struct census_socket *s) {
    for (size_t i = 0; i < all->n; i++) {
        const struct socket_line *l = &all->v[i].line;
        if (l->local_port == s->line.remote_port && l->remote_port == s->line.local_port &&
            str_eq(l->local, s->line.remote) && str_eq(l->remote, s->line.local) &&
            all->v[i].node >= 0)
            return all->v[i].node;
    }
    return node_at(all->cluster, s->line.remote);
}

static bool read_address(const struct sockaddr_storage *to, char *ret, size_t size,
                         uint16_t *ret_port) {
    const struct sockaddr_in *v4 = (const void *)to;
    const struct sockaddr_in6 *v6 = (const void *)to;
    if (to->ss_family == AF_INET) {
        *ret_port = ntohs(v4->sin_port);
        return inet_ntop(AF_INET, &v4->sin_addr, ret, (socklen_t)size);
    }
    if (to->ss_family != AF_INET6)
        return false;
    *ret_port = ntohs(v6->sin6_port);
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        return inet_ntop(AF_INET, (const char *)&v6->sin6_addr + 12, ret, (socklen_t)size);
    return inet_ntop(AF_INET6, &v6->sin6_addr, ret, (socklen_t)size);
}

bool census_destination(const struct cluster *c, const struct sockaddr_storage *to, int *ret_node,
                        uint16_t *ret_port) {
    char address[64];
    if (!read_address(to, address, sizeof(address), ret_port))
        return false;
    int node = node_at(c, address);
    if (node < 0) {
        struct census all;
        census_take(&all, c);
        const struct census_socket *l = find_listener(&all, address, *ret_port);
        node = l ? l->node : -1;
        census_fini(&all);
    }
    *ret_node = node;
    return node >= 0;
}
