/* power: the power of a node's host, taken and given back by commands of whoever operates it
 * (cluster.power). What shows that it is gone is the end of what its helper says; that it was, a helper
 * that has begun anew with its host. What the commands claim is no evidence. Of this room only. */
#pragma once

#include "harness/cluster/parts.h"

struct power;

/* Begins to take it: -EINPROGRESS, and cluster_callbacks.powered follows; -ENOTSUP: there is no command
 * for it, and nothing was done; or another -errno. */
int power_cut(struct node *n, struct err *err);
/* It was taken, or is about to be, and has not come back. */
bool power_is_out(const struct node *n);
/* Likewise, and it still may. */
bool power_is_awaited(const struct node *n);
/* Begins to give it back, if need be once it is gone; the node is started then. Returns 0 or a
 * -errno; powered follows. */
int power_give(struct node *n, bool fresh_disk, struct err *err);
/* The run ends: what is out is given back, and no node started. */
void power_restore(struct node *n);

void power_heard(struct node *n);      /* its helper has said something */
void power_node_ended(struct node *n); /* the way to its helper has */
/* Its keeper goes on until the host has its power back. */
struct power *power_free(struct power *p); /* NULL is allowed; returns NULL */
