/* tcp_links: the connections of a rank with the others of its group: with the next and the one
 * before in the ring, and, in groups with pairs, with every other rank. */
#pragma once

#include "scenarios/jobs/ranktrain/net/bootstrap.h"

#include "base/err.h"

#include <stdbool.h>

struct tcp_links {
    int rank, world, wake_fd;
    int next, prev; /* ranks */
    bool shut;
    int next_fd, prev_fd;         /* -1 when closed */
    int pairs[BOOTSTRAP_MEMBERS]; /* -1: none */
    char names[BOOTSTRAP_MEMBERS][LINK_NAME];
};

/* Connects to some and waits for the others; whoever else calls is sent away. Returns 0,
 * -ECANCELED, or an error whose sentence names the peer; tcp_links_close in either case. */
int tcp_links_open(struct tcp_links *ret, struct peer_group *g, const struct link_wait *w,
                   struct err *err);
void tcp_links_close(struct tcp_links *l);

/* The peers notice at once, and so does a wait of another thread: nothing moves any more. */
void tcp_links_shut(struct tcp_links *l);

/* The sentence of an error of the connection with a rank; -ECONNRESET: it has gone. */
int tcp_links_lost(const struct tcp_links *l, int rank, int code, struct err *err);
