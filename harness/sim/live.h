/* live: a schedule as a scenario for `rankquake run`, on real nodes and processes, as far as there
 * are words for it. Times are what they can be: the simulation counts from the start of the agents,
 * a scenario from the steady state of the first round.
 *
 * What is expected there follows from what is played, not from how the simulated run ended: that
 * one has broken an invariant, and its end is the bug's. */
#pragma once

#include "harness/sim/script.h"

/* seen: what the simulation made of it; NULL: it was not played. What cannot be played is said in
 * comments, with the reason. Returns how many lines of the schedule can. */
int live_write(const struct script *s, const struct sim_result *seen, struct buf *out);
/* Why no entry with such a fault can be played; NULL: there are words for it. */
const char *live_lacks(enum sim_fault_kind fault);
