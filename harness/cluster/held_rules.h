/* held_rules: the rules (disk_rules.h) in force on a node's disks, and what they make of its program's system
 * calls that wait for us (call_watch.h): these go on, fail, or wait longer. The harness has them of a node of
 * its own host, the node's helper on any other. Of this room only. */
#pragma once

#include "base/sys/loop.h"
#include "faults/mechanism/call_watch.h"
#include "faults/mechanism/disk_rules.h"
#include "harness/cluster/cluster.h"

/* So many operations that a rule has struck are told one by one; then they are counted. */
enum { HELD_TOLD_MAX = 8 };

struct held_rules;

/* One has struck a call, and the kernel has taken the answer, or the call waits. */
typedef void held_struck_fn(void *arg, const struct disk_rule_state *rule, enum disk_verdict v,
                            const struct disk_strike *s);
struct held_rules *held_rules_new(struct loop *l, held_struck_fn *struck, void *arg);
struct held_rules *held_rules_free(struct held_rules *h); /* NULL is allowed; returns NULL */

/* The call_watch of a program from now on, which stays the caller's; -1: none. Who waited is another's. */
void held_rules_watch(struct held_rules *h, int watch);
/* True: a rule decides about this call, and it has been dealt with. */
bool held_rules_meet(struct held_rules *h, const struct watched_call *c);

/* The one that says the same, or has this number; NULL: none is in force. */
struct disk_rule_state *held_rules_like(const struct held_rules *h, const struct disk_rule *r);
struct disk_rule_state *held_rules_find(const struct held_rules *h, int64_t id);
/* All of them, as they came. */
const struct disk_rule_state *held_rules_all(const struct held_rules *h, size_t *ret_n);
/* Returns its number. */
int64_t held_rules_add(struct held_rules *h, const struct disk_rule *r);
/* As the member `key`, NULL: an item, and of what was so written: with the rule's root, and how far it has come. */
void held_rules_put(const struct disk_rule_state *s, struct json_writer *w, const char *key);
void held_rules_take(const struct json *j, struct disk_rule_state *ret);
/* Who waits for it goes on. */
void held_rules_drop(struct held_rules *h, int64_t id);
