/* traffic: which frames a fault on the wire is about, by what the scenario says of `groups` and
 * `planes`. */
#pragma once

#include "faults/fault.h"

/* Whom it is between, as groups for node_ops.part: what `groups` says, else the target and all
 * others. */
enum { FAULT_GROUPS_MAX = 1024 };
void fault_groups(const struct target *t, const struct fault_args *a, char *ret, size_t size);

/* PLANE_* of `planes`, all when it does not say; -EINVAL. */
int fault_planes(const struct fault_args *a, struct err *err);
