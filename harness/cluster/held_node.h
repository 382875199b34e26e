/* held_node: what faults do to a node as a whole that its helper on another host does by itself: it holds it to
 * limits, moves its wall clock, and lets what its programs do to disks fail. The faults ask for it by node_ops, as they do in the
 * harness. Of this room only. */
#pragma once

#include "base/json.h"
#include "harness/cluster/held_limits.h"
#include "harness/cluster/held_rules.h"
#include "harness/host/host_clock.h"

struct held_node {
    struct held_limits limits;
    struct host_clock wall;      /* what its programs take for the time */
    struct held_rules *rules;    /* the caller's; NULL: there are none */
    char *places[NODE_DISK + 1]; /* where {shared} and {disk} lie; NULL: nobody has said so */
    const struct json
        *had; /* of the rule that comes in force now, in a life before; NULL: nothing */
};

/* Of a target whose node is a struct held_node: limit, unlimit, shift_clock and disk_rule alone. */
extern const struct node_ops held_node_ops;

/* Takes {shared, disk} of a `setup`. */
void held_node_places(struct held_node *h, const struct json *setup);
/* Those in force, as the member `rules`: [{.., matched, done, used}], in an object that is open. */
void held_node_put_rules(const struct held_node *h, struct json_writer *w);
void held_node_fini(struct held_node *h); /* what it knows; nothing is lifted */
