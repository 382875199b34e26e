/* beside: runs side by side (--jobs), after the control runs that they share. */
#pragma once

#include "harness/verbs/run/tally.h"

void beside_run(struct run_request *q, struct run_tally *t);
