/* power: how a node goes off, and on again. */
#pragma once

#include "faults/fault.h"

/* Kills every process of the node; `silent`: once nothing from it is heard any more. Returns when
 * it is off. -EINPROGRESS: an operator's command takes its power, and whoever runs that tells what came
 * of it (node_ops.cut_power). */
int power_off(const struct target *t, bool silent, struct err *err);
/* Switches it on; 0 also if it is on. */
int power_on(const struct target *t, bool fresh_disk, struct err *err);

/* Parameters of faults that do both, and what follows from them for the course of such a fault. */
#define POWER_PARAMS                                                                               \
    {"silent", "bool", "false", "true: it loses its power, and peers see neither FIN nor RST"}, {  \
        "disk", "string", "kept", "kept, or fresh: its disk is emptied while it is off"            \
    }
int power_check(const struct fault_args *a, struct err *err);
bool power_is_silent(const struct fault_args *a);
bool power_wants_fresh_disk(const struct fault_args *a);
void power_course(const struct fault_args *a, struct fault_course *ret);
