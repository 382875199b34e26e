/* pause: what whoever runs the harness says while it does: a signal ends the job; at a terminal
 * `run --keep` then leaves the cluster up, to be looked at, until Enter or the next signal. */
#pragma once

#include "harness/run/engine.h"

/* The job has ended. True while the cluster is to stay up; the pause takes it down then. */
bool pause_begin(struct engine *e);
