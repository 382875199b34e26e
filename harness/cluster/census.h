/* census: which socket of the host belongs to which node, where nodes are processes of the host. */
#pragma once

#include "harness/cluster/parts.h"
#include "harness/host/sockets.h"

#include <sys/socket.h>

struct census_socket {
    struct socket_line line;
    int node;  /* its place in the cluster; -1: nobody's of the cluster */
    pid_t pid; /* that has it as fd; 0: none, it waits to be accepted or to end */
    int fd;
};

struct census {
    const struct cluster *cluster;
    struct census_socket *v;
    size_t n;
};

void census_take(struct census *ret, const struct cluster *c);
void census_fini(struct census *all);
/* The node at the other end; -1: none. */
int census_peer(const struct census *all, const struct census_socket *s);

/* The node that would take a connection to this address, and the port. False: no node, or not TCP
 * over IP. */
bool census_destination(const struct cluster *c, const struct sockaddr_storage *to, int *ret_node,
                        uint16_t *ret_port);
