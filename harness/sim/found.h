/* found: what comes of a schedule that breaks an invariant: it is made small and written down, as
 * it was drawn and as it became. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "harness/sim/sim.h"

#include <signal.h>

/* Makes DIR a run directory for `rankquake judge`, and writes schedule.yaml and shrunk.yaml there;
 * said: what to tell. dir NULL: runs/sim-SEED. Once *stop is not 0 it is made no smaller, and
 * written as it is; NULL: it goes as far as it can. Returns 0 or an error. */
int found_write(const struct sim_config *config, const char *dir, const volatile sig_atomic_t *stop,
                struct buf *said, struct err *err);
