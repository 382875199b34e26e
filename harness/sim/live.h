/* live: a schedule as a scenario for `rankquake run`, on real nodes and processes, as far as there
 * are words for it. Times are what they can be: the simulation counts from the start of the agents,
 * a scenario from the steady state of the first round. */
#pragma once

#include "harness/sim/script.h"

/* steady_ns: when the first round ran in the simulation. What cannot be played is said in comments.
 * Returns how many lines of the schedule can. */
int live_write(const struct script *s, int64_t steady_ns, struct buf *out);
