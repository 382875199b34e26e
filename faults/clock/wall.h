/* wall: what the faults on a node's wall clock have in common. */
#pragma once

#include "faults/fault.h"

/* "+5m", "-1h", "90s": by how far the clock is ahead, not 0, at most ten years. */
int wall_by(const struct fault_args *a, const char *absent, int64_t *ret_ns, struct err *err);

typedef int wall_shift_fn(const struct fault_args *a, struct clock_shift *ret, struct err *err);
/* Shifts the clock of the node from now on as `read` makes of the arguments. */
int wall_shift(const struct target *t, const struct fault_args *a, wall_shift_fn *read,
               struct err *err);
int wall_recover(const struct target *t, const struct fault_args *a, struct err *err);

/* check and inject of such a fault. */
#define FAULT_SHIFTS(read)                                                                         \
    static int check(const struct fault_args *a, struct err *err) {                                \
        struct clock_shift shift = {0};                                                            \
        return read(a, &shift, err);                                                               \
    }                                                                                              \
    static int inject(const struct target *t, const struct fault_args *a, struct err *err) {       \
        return wall_shift(t, a, read, err);                                                        \
    }
