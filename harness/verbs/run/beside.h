/* beside: runs side by side (--jobs), after the control runs that they share. */
#pragma once

#include "harness/verbs/run/tally.h"

/* The control runs of all that was selected and nothing else: of a process that was started for that. */
void beside_prepare(struct run_request *q, struct run_tally *t);
void beside_run(struct run_request *q, struct run_tally *t);
