/* burn: takes processors away from a process and all that shares them with it. */
#pragma once

#include "faults/mechanism/keeper.h"

/* On each processor that the process may use a thread of ours computes for run_ns and sleeps for
 * stop_ns, before all others as far as the kernel lets it: in real time, else with the best nice
 * value, else as everybody. */
extern const struct keeper_work keeper_burn;
