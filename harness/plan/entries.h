/* entries: the parts of plan_make. Private to this room. */
#pragma once

#include "harness/plan/plan.h"

/* The root file system of the nodes, absolute. */
void rootfs_make(struct plan *p);
/* Addresses, names and what is on; the store's node comes last. */
void topology_make(struct plan *p);
/* Gives the nodes addresses below this prefix ("127.64.3"), which is also what they are called by.
 */
void topology_move(struct plan *p, const char *prefix);

/* The same with the address that each of its hosts has; agents meet at the first's. */
void topology_move_to_hosts(struct plan *p);

/* "dark (node-poweroff) in line 7, column 20"; one that was drawn or included is in no line. */
enum { ENTRY_TEXT_MAX = 200 };
const char *entry_text(const struct timeline_entry *a, const char *word, struct place p,
                       char ret[ENTRY_TEXT_MAX]);

/* Asks the hosts of cluster.hosts and gives each node one. Returns 0, or -ENOTSUP with a sentence
 * that names the host: it cannot be used, or a fault of the timeline cannot there. */
/* The hosts of a cluster that a provider reaches: those it names, or those the provider knows. Returns
 * 0, or -EINVAL with a sentence; what it finds is in the arena. */
int hosts_name(const struct cluster_spec *c, struct arena *a, const char *const **ret,
               size_t *ret_n, struct err *err);
int hosts_settle(struct plan *p, struct err *err);
void hosts_put(const struct plan *p,
               struct buf *out); /* for people: which they are, and their clocks */

/* Which devices this host has, and which node gets which; asks the driver. */
void devices_deal(struct plan *p);

/* Binds every entry of the timeline to its fault and refuses what can never happen. */
void entries_make(struct plan *p, struct diagnostics *d);

/* Appends the groups that a `shape` would have if it came at once; nothing where there is none. */
void entries_put_shape(const struct plan *p, const struct planned_entry *pa, struct buf *out);

/* "in round 2, when the target has done step 57"; a node-start's target does nothing yet, so any
 * worker's step will do. */
void trigger_describe(const struct timeline_entry *a, struct buf *out);
/* The same of what ends a fault: "in round 2, when any worker has done step 57". */
void until_describe(const struct trigger *t, struct buf *out);

/* What faults and job may do to this host, how its nodes are kept apart and who starts them
 * considered. */
void blast_print(const struct plan *p, struct buf *out);
