/* device_snapshots: who is on the devices, at the moments that matter. */
#pragma once

#include "harness/run/engine.h"

/* at: start | round-start | round | first-end | round-end | job-end. */
void device_snapshots_take(struct engine *e, const char *at, int round);
