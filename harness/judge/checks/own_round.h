/* own_round: workers by what the launcher itself calls their round and their node. */
#pragma once

#include "harness/judge/checks/check.h"

/* The launcher's own number of the worker's round (RANKRUN_ROUND); -1: it was told none. */
int64_t own_round(const struct worker *w);

/* Where nodes are processes, or hosts, an agent knows itself by its address, which on a host a store may
 * have too. NULL: by a name of its own, and the rank alone must do. */
const char *own_node(const struct history *h, const char *name);
