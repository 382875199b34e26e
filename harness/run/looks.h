/* looks: who is on the devices, at the moments that matter. */
#pragma once

#include "harness/run/engine.h"

/* at: start | round-start | round | first-end | round-end | job-end. */
void looks_take(struct engine *e, const char *at, int round);
