/* cut: which connections between nodes that are processes are silent. It follows the partitions of
 * the cluster and its silent nodes, as the wire does for nodes in namespaces; what it can reach are
 * the TCP sockets of the nodes' processes (faults/mechanism/socket_cut.h). */
#pragma once

#include "faults/mechanism/call_watch.h"
#include "harness/cluster/parts.h"

struct cut *cut_new(struct cluster *c);
struct cut *cut_free(struct cut *k); /* NULL is allowed; returns NULL */
/* Brings in force what partitions and silent nodes ask for by now, and nothing else. */
int cut_apply(struct cluster *c, struct err *err);
/* The connections of a silent node whose processes are dead: nobody holds them any more. Its
 * listeners stay, and stay silent, until it is forgotten. */
void cut_let_die(struct cut *k, struct node *n);
void cut_forget(struct cut *k, struct node *n);
/* Traffic with this port belongs to the bootstrap plane from now on. */
void cut_bootstrap(struct cluster *c, uint16_t port);
/* Something in the node is about to connect, and waits. */
void cut_call(struct cut *k, struct node *n, const struct watched_call *call);
/* Whether the plan has a fault that cuts: only then the nodes' connections are watched. */
bool cut_is_planned(const struct cluster *c);
/* Counters as they are now, told on the loop's next turn, and that they have been told: packets
 * dropped at the nodes' sockets; none when no cut is planned. */
void cut_count(struct cut *k);
