/* telling: what a CI server is told of runs that have left nothing to be read, or were let pass. */
#pragma once

#include "harness/verbs/run/tally.h"

void telling_end(struct run_request *q, const struct run_tally *t);
