/* injections: what each fault does. It finds the world as it is: where there is nothing for it to
 * strike, it has not happened (false). node is one that there is, also for what strikes
 * them all. */
#pragma once

#include "harness/sim/history_writer.h"

#define X(NAME, name) bool inject_##name(struct sim *c, int node, const struct sim_entry *e);
SIM_FAULTS(X)
#undef X
