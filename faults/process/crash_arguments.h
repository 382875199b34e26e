/* crash_arguments: what all faults by which a worker crashes have in common. */
#pragma once

#include "faults/fault.h"

#define CRASH_PARAMS                                                                               \
    (const struct fault_param[]) {                                                                 \
        {"core", "int", "512",                                                                     \
         "MiB of its memory that the core file holds at most, in cores/ of the run; 0: no core"},  \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

int crash_check(const struct fault_args *a, struct err *err);
const char *crash_keeps(const struct fault_args *a);
int crash_inject(const struct target *t, const struct fault_args *a, int signo, struct err *err);
