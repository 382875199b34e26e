/* held_limits: what a helper on another host holds its node to, and what the kernel there has counted of it
 * (held_node.h). Of this room only. */
#pragma once

#include "base/json.h"
#include "base/texts.h"
#include "harness/cluster/limit_group.h"

struct held_limits {
    struct limit_group v[NODE_LIMITS_N];
};

/* As struct node_ops has it. Who descends from the caller is held. */
int held_limits_set(struct held_limits *h, enum node_limit what, int64_t value, struct err *err);
int held_limits_lift(struct held_limits *h, enum node_limit what, struct err *err);

/* Those in force, as the member `limits`: [{limit, text}], text being the kernel's. Nothing where none is. */
void held_limits_put(const struct held_limits *h, struct json_writer *w);
/* Takes away all; adds those that stay to `left`, which may be NULL. */
void held_limits_end(struct held_limits *h, struct texts *left);
