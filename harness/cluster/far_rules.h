/* far_rules: faults in force on the disks of a node on another host. A disk stays as it is when its node goes off, so the
 * helper of the node's next life is told anew, with what the rule had struck by then. Of this room only. */
#pragma once

#include "harness/cluster/parts.h"

struct far_rule {
    char *order; /* the `fault` that brings it in force, its end still open */
    struct disk_rule_state state;
};
struct far_rules {
    struct far_rule *v;
    size_t n;
};

/* One that is said to the helper now; rule: with its root. Once, however often it is said. */
void far_rules_add(struct far_rules *f, const struct buf *order, const struct disk_rule *rule);
void far_rules_drop(struct far_rules *f, const struct disk_rule *rule);
/* A `bye`: how far the helper had come with each. */
void far_rules_bye(struct far_rules *f, const struct json *bye);
/* Another helper is there, and nothing runs on the node yet. Returns 0 or a -errno. */
int far_rules_say_again(const struct node *n, struct err *err);
void far_rules_fini(struct far_rules *f);
