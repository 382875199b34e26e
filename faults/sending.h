/* sending: a fault that sends a signal, and leaves to whom it is sent what comes of it. */
#pragma once

#include "faults/fault.h"

#include <sys/wait.h>

/* check, status and inject of such a fault. read(a, err): the signal, or a -errno with the reason. */
#define FAULT_SENDS(read)                                                                          \
    static int check(const struct fault_args *a, struct err *err) {                                \
        return read(a, err);                                                                       \
    }                                                                                              \
    /* Of one that it ends. */                                                                     \
    static int status(const struct fault_args *a) {                                                \
        int signo = read(a, NULL);                                                                 \
        return signo < 0 ? -1 : W_EXITCODE(0, signo);                                              \
    }                                                                                              \
    static int inject(const struct target *t, const struct fault_args *a, struct err *err) {       \
        int signo = read(a, err);                                                                  \
        return signo < 0 ? signo : target_signal(t, signo, err);                                   \
    }
