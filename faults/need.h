/* need: what faults need of a host on which nodes are processes (enum fault_need). */
#pragma once

#include "faults/fault.h"

/* Those that only nodes in namespaces have. */
enum {
    FAULT_NEEDS_OF_NAMESPACES =
        FAULT_NEEDS_WIRE | FAULT_NEEDS_UPTIME | FAULT_NEEDS_NAMES | FAULT_NEEDS_SCHEDULER,
};

/* Tries each of them. 0, or -ENOTSUP with the reason and what would fix it. */
int fault_needs_check(unsigned needs, struct err *err);

/* The same where nodes are namespaces, which have most of it by themselves. */
int fault_needs_check_namespaces(unsigned needs, struct err *err);

/* A phrase for lists and plans, "" when nothing is needed. */
const char *fault_needs_text(unsigned needs);
