/* netlink: network cards, addresses and sockets of a network namespace, by rtnetlink(7) and
 * sock_diag(7). A netlink socket belongs to the namespace in which it was opened, whoever uses it
 * later, and keeps that namespace alive. All calls wait for the kernel's answer. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Close-on-exec sockets, the caller's; a -errno on failure. */
int netlink_open_route(struct err *err);
int netlink_open_diag(struct err *err);

struct netlink_veth {
    const char *name, *peer_name;
    const unsigned char *peer_mac; /* NULL: random */
    int peer_netns;                /* an fd; -1: the same as nl's */
};

/* Makes the pair, both ends down; *ret_ifindex is that of `name`. Removing one end removes both. */
int netlink_add_veth(int nl, const struct netlink_veth *v, int *ret_ifindex, struct err *err);
/* Cards made in this network namespace from now on do not speak IPv6. A wish: not every kernel has
 * it. */
void netlink_refuse_ipv6(void);
int netlink_link_index(int nl, const char *name, int *ret_ifindex, struct err *err);
int netlink_link_up(int nl, int ifindex, struct err *err);
int netlink_link_delete(int nl, int ifindex, struct err *err);
/* addr: "198.18.0.10". */
int netlink_add_address(int nl, int ifindex, const char *addr, int prefix, struct err *err);

/* An established TCP connection by IPv4, as one end has it. */
struct netlink_connection {
    uint32_t remote; /* in network order, as inet_pton gives it */
    uint16_t local_port, remote_port;
    uint64_t cookie;      /* no other socket of this kernel ever has it */
    unsigned char id[48]; /* the kernel's own name for it */
    bool by_ipv6;         /* its socket is one of IPv6 */
};
/* All of diag's namespace; *ret is the caller's, to free. 0 or a -errno. */
int netlink_connections(int diag, struct netlink_connection **ret, size_t *ret_n, struct err *err);
/* Ends it without a word to its owner but ECONNABORTED; its peer is sent a RST. -ENOENT: it has
 * gone; -EOPNOTSUPP as below. */
int netlink_destroy_connection(int diag, const struct netlink_connection *c, struct err *err);
/* Destroys every TCP socket of diag's namespace, those without an owner too. Returns how many there
 * were, or -errno (-EOPNOTSUPP: a kernel without CONFIG_INET_DIAG_DESTROY). */
int netlink_destroy_sockets(int diag, struct err *err);
