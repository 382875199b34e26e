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

/* The programs that a scheduler in the nodes is made of (FAULT_NEEDS_SCHEDULER), NULL-ended; daemons
 * are looked for in the second too, behind PATH; and what would install them. */
extern const char *const fault_scheduler_programs[];
#define FAULT_SCHEDULER_PATH "/usr/sbin:/sbin"
#define FAULT_SCHEDULER_FIX  "apt install slurmctld slurmd slurm-client munge"
