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
/* enum impairment_direction of `direction`, both when it does not say; -EINVAL. */
int fault_direction(const struct fault_args *a, struct err *err);

/* One argument, or what it is when it is absent. 0, or -EINVAL with what may be written. */
int fault_share(const struct fault_args *a, const char *key, const char *absent, int64_t *ret_ppm,
                struct err *err); /* "0.5%", of more than nothing and at most 100% */
int fault_rate(const struct fault_args *a, const char *key, const char *absent, int64_t *ret_bit_s,
               struct err *err); /* "10mbit", as tc(8) writes it, of 8kbit to 100gbit */
int fault_count(const struct fault_args *a, const char *key, const char *absent, int64_t min,
                int64_t max, int64_t *ret, struct err *err);
int fault_duration(const struct fault_args *a, const char *key, const char *absent, int64_t max_ns,
                   int64_t *ret_ns, struct err *err); /* not 0 */

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
        {"planes", "string", "all",                                                                \
         "of which traffic: store, bootstrap (MASTER_PORT), data (the rest) or all; store,data"},  \
    {                                                                                              \
        "direction", "string", "both",                                                             \
            "both; from: only what the first group, or the target, sends; to: what it is sent"     \
    }
