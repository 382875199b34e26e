/* held_limits: what a helper on another host holds its node to, and what the kernel there has counted of it. The
 * faults themselves ask for it by node_ops, as they do in the harness. Of this room only. */
#pragma once

#include "base/json.h"
#include "base/texts.h"
#include "harness/cluster/limit_group.h"

struct held_limits {
    struct limit_group v[NODE_LIMITS_N];
};

/* Of a target whose node is a struct held_limits: limit and unlimit alone. Who descends from the caller is
 * held. */
extern const struct node_ops held_limits_ops;

/* Those in force, as the member `limits`: [{limit, text}], text being the kernel's. Nothing where none is. */
void held_limits_put(const struct held_limits *h, struct json_writer *w);
/* Takes away all; adds those that stay to `left`, which may be NULL. */
void held_limits_end(struct held_limits *h, struct texts *left);
