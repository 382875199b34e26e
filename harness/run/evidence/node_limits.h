/* node_limits: whether the limits of a node's program, as /proc has them, are not what they were. */
#pragma once

#include "harness/run/evidence/counters.h"

void *node_limits_begin(struct run_entry *a, struct bound *b); /* a struct counter */
bool node_limits_lowered(const struct counter *k, const struct bound *b);
