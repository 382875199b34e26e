/* far_cut: partitions between nodes on other hosts. What is in force of the cluster becomes each host's
 * half of it (harness/host/host_cut.h), told to its helper and answered by it; what its kernel has
 * dropped, and what came through, is asked of it. Of this room only. */
#pragma once

#include "harness/cluster/parts.h"

struct far_cut;

struct far_cut *far_cut_new(struct cluster *c);
struct far_cut *far_cut_free(struct far_cut *k); /* NULL is allowed; returns NULL */

/* Brings in force what partitions and silent nodes ask for by now, and nothing else. Returns when all
 * helpers that are up have said so: 0, or an error that names the host, and then nothing new is in force. */
int far_cut_apply(struct far_cut *k, struct err *err);
/* Its host is cut off by a filter of packets; else by the sockets of what its helper has started. */
bool far_cut_is_by_table(const struct node *n);
/* Traffic with this port belongs to the bootstrap plane from now on. */
void far_cut_bootstrap(struct far_cut *k, uint16_t port);
/* Counters are told when all helpers have told theirs, and then that they have been. */
void far_cut_count(struct far_cut *k);

/* Takes the message: an answer, or whatever comes while answers are waited for, which is heard later
 * and in its order. False: it is to be handled as ever. */
bool far_cut_takes(struct far_cut *k, struct node *n, struct message *m);
/* Its helper says nothing more; what it was told has gone with it. */
void far_cut_lost(struct far_cut *k, struct node *n);
/* It is up: it is told what is in force. */
void far_cut_joined(struct far_cut *k, struct node *n);
