/* found: what comes of a schedule that breaks an invariant: it is made small and written down, as
 * it was drawn and as it became. */
#pragma once

#include "agent/base/buf.h"
#include "agent/base/err.h"
#include "harness/sim/sim.h"

/* Makes DIR a run directory for `rankquake judge`, and writes schedule.yaml and shrunk.yaml there;
 * said: what to tell. dir NULL: runs/sim-SEED. Returns 0 or an error. */
int found_write(const struct sim_config *config, const char *dir, struct buf *said,
                struct err *err);
