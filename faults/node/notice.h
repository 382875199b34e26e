/* notice: how a cloud takes a node away: it says so, waits, and switches the node off. */
#pragma once

#include "faults/fault.h"

#define NOTICE_PARAMS                                                                              \
    {"grace", "duration", "2s", "from the notice to the power-off"},                               \
        {"cloud", "string", "aws",                                                                 \
         "aws, gcp or azure: whose document the notice is; nodes in namespaces find it at "        \
         "169.254.169.254, too"},                                                                  \
    {                                                                                              \
        "notice", "text", "preempted.json",                                                        \
            "a file of the node's disk, or an absolute one below its own /tmp or /run"             \
    }
int notice_check(const struct fault_args *a, struct err *err);
void notice_course(const struct fault_args *a, struct fault_course *ret);
/* Leaves the notice on the node and with its metadata service, and sends SIGTERM to its program. */
int notice_give(const struct target *t, const struct fault_args *a, struct err *err);
/* Switches the node off without a word to its peers. */
int notice_follow(const struct target *t, const struct fault_args *a, struct err *err);
