/* tcp: listening sockets, reserved ports, and which address is ours.
 *
 * All sockets are close-on-exec. Addresses are text: a name or a number; "host:port" with IPv6 in
 * brackets. Resolving a name may ask the network and block: only done at start-up. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TCP_HOST_MAX = 256 };

struct tcp_endpoint {
    char host[TCP_HOST_MAX]; /* without brackets */
    uint16_t port;
};

/* Reads "host", "host:port" or "[v6]:port"; without a port it is port_absent. Returns 0 or -EINVAL
 * with a sentence that shows the form. */
int tcp_endpoint_parse(const char *text, uint16_t port_absent, struct tcp_endpoint *ret,
                       struct err *err);

/* Listens, non-blocking, with SO_REUSEADDR (a store that restarts must not wait for old
 * connections). port 0: a free one. Of a name with several addresses, as localhost, at the first that
 * can be had, and at none behind one where somebody has the port: -EADDRINUSE. ret_fd belongs to
 * the caller. Returns 0 or -errno. */
int tcp_listen(const char *host, uint16_t port, int backlog, int *ret_fd, uint16_t *ret_port,
               struct err *err);

/* Binds, on every address and without listening, a port that the kernel gives to nobody by itself:
 * one outside ip_local_port_range. While ret_fd (the caller's) is open no other process can have
 * it; closing leaves nothing behind. Returns 0 or -errno. */
int tcp_reserve_port(int *ret_fd, uint16_t *ret_port, struct err *err);
/* The same with a port that is given: -EADDRINUSE when somebody has it. */
int tcp_reserve_this_port(uint16_t port, int *ret_fd, struct err *err);

/* True when host names an address of this machine (one that can be bound here). */
bool tcp_host_is_ours(const char *host);

/* True when host is a name that stands for this machine, but only on it: one that resolves to
 * loopback addresses, as Debian's installer puts a host's own name at 127.0.1.1. What says loopback
 * by itself (localhost, a number) is none. */
bool tcp_name_is_hidden(const char *host);
/* True when the address, a number, is this host's own network, whoever reads it. */
bool tcp_number_is_loopback(const char *addr);
/* True when the socket is bound to an address that no other host reaches. */
bool tcp_is_loopback(int fd);
/* For tcp_listen: every address of both families; where there is no IPv6, "0.0.0.0" is. */
#define TCP_ANYWHERE "::"

/* The address this machine uses towards the endpoint, as a number; nothing is sent. Returns 0 or
 * -errno (no route, name not known). */
int tcp_address_towards(const struct tcp_endpoint *e, char ret_addr[TCP_HOST_MAX], struct err *err);

/* All addresses of an endpoint, for tcp_connect; at most `max` of them. Returns how many, or
 * -errno. May block, as every look-up of a name. */
struct tcp_address {
    _Alignas(8) char bytes[128]; /* a sockaddr_storage */
    unsigned len;
};
int tcp_resolve(const struct tcp_endpoint *e, struct tcp_address *ret, int max, struct err *err);
/* The same for a host that is a number, which never blocks; 0 when it is a name. */
int tcp_resolve_number(const struct tcp_endpoint *e, struct tcp_address *ret, int max);
/* Begins to connect, without blocking: writable when it has (tcp_connected says how). */
int tcp_connect(const struct tcp_address *to, int *ret_fd);
int tcp_connected(int fd); /* 0, or the -errno of the attempt */

/* The two ends of a connection as numbers, "10.0.0.1:29400" and "[fd00::1]:29400"; an IPv4 address
 * in an IPv6 one as what it is. -errno when there is none (any more). */
enum { TCP_ENDS_MAX = 64 };
int tcp_ends(int fd, char ret_own[TCP_ENDS_MAX], char ret_peer[TCP_ENDS_MAX]);
/* The other side has closed, in order: its FIN came, and after all that it had sent. False also
 * when the connection was reset or timed out, whoever has read that error. */
bool tcp_ended_in_order(int fd);
/* Of the last n bytes that were sent, the other side's kernel has acknowledged none. Where it has
 * closed in order as well, nobody there has read them: what came before its FIN that acknowledges.
 */
bool tcp_none_arrived(int fd, size_t n);
/* Closes so that the end is a reset, whoever else holds the socket. */
void tcp_close_as_broken(int *fd);

/* How many of this process's connections have this port at our end, as the kernel says. */
size_t tcp_count_connections(uint16_t port);

/* Makes a connection whose other host vanished without a FIN end after about seconds, also
 * when nothing is being sent. Best effort. */
void tcp_bound_silence(int fd, int seconds);
