/* far_rules: faults in force on the disks of a node on another host. A disk stays as it is when its node goes off, so the
 * helper of the node's next life is told anew. Of this room only. */
#pragma once

#include "harness/cluster/parts.h"

/* A `fault` that has been said, as it would be said again: kept in node.far_rules, once. */
void far_rules_add(struct node *n, const struct buf *order);
void far_rules_drop(struct node *n, const struct buf *order);
/* Another helper is there, and nothing runs on the node yet. Returns 0 or a -errno. */
int far_rules_say_again(struct node *n, struct err *err);
