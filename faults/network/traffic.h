/* traffic: which frames a fault on the wire is about, by what the scenario says of `groups` and
 * `planes`. */
#pragma once

#include "faults/arguments.h"

/* Whom it is between, as groups for node_ops.part: what `groups` says, else the target and those
 * that `names` says, else the target and all others. */
enum { FAULT_GROUPS_MAX = 1024 };
void fault_groups(const struct target *t, const struct fault_args *a, char *ret, size_t size);

/* PLANE_* of `planes`, all when it does not say; -EINVAL. */
int fault_planes(const struct fault_args *a, struct err *err);
/* Fills in what says between which groups it is: `direction`, both when it does not say, and the
 * ring that `shape` makes of the groups, once they have been drawn. -EINVAL. */
int fault_between(const struct fault_args *a, struct impairment *ret, struct err *err);

/* What a fault that impairs frames does with its arguments: `read` makes an impairment of them, to
 * which planes, direction and seed are added here. */
typedef int fault_impairment_fn(const struct fault_args *a, struct impairment *ret,
                                struct err *err);
int fault_impairment(const struct fault_args *a, fault_impairment_fn *read, struct impairment *ret,
                     struct err *err);
int fault_impair(const struct target *t, const struct fault_args *a, fault_impairment_fn *read,
                 bool on, struct err *err);

/* check, inject and recover of such a fault, and the parameters that all of them have. */
#define FAULT_IMPAIRS(read)                                                                        \
    static int check(const struct fault_args *a, struct err *err) {                                \
        struct impairment how;                                                                     \
        return fault_impairment(a, read, &how, err);                                               \
    }                                                                                              \
    static int inject(const struct target *t, const struct fault_args *a, struct err *err) {       \
        return fault_impair(t, a, read, true, err);                                                \
    }                                                                                              \
    static int recover(const struct target *t, const struct fault_args *a, struct err *err) {      \
        return fault_impair(t, a, read, false, err);                                               \
    }
#define FAULT_TRAFFIC_PARAMS                                                                       \
    {"groups", "groups", "(the target, and everybody else)",                                       \
     "between whom, as in n0,n1|n2; instead of on; the store is named store"},                     \
        {"shape", "string", "(none)",                                                              \
         "instead of on and groups: drawn from the seed among the nodes that are on; isolate, "    \
         "halves, majority, bridge or ring. A store on a host of its own is on the first side, "   \
         "and with bridge and ring within everybody's reach"},                                     \
        {"planes", "string", "all",                                                                \
         "of which traffic: store, bootstrap (MASTER_PORT), data (the rest) or all; store,data"},  \
    {                                                                                              \
        "direction", "string", "both",                                                             \
            "both; from: only what the first group, or the target, sends; to: what it is sent"     \
    }
