/* doctor_trials: `doctor --faults`: each fault that is asked for tried in scratch nodes. */
#pragma once

#include "harness/doctor/outlook.h"
#include "harness/trial/trials.h"
#include "harness/verbs.h"

struct doctor_trials {
    struct trials trials;
    bool *wanted; /* as the table of faults; NULL: none is tried */
};

/* Reads --faults, --isolation and --keep. Returns 0, or the exit code after saying what is wrong. */
int doctor_trials_read(const struct arguments *a, struct doctor_trials *ret);
/* Tries them, and says for each that was tried what came of it instead of what was to be expected.
 * loud: on standard error, how far it has come. Returns 0, or the exit code after saying why. */
int doctor_trials_run(struct doctor_trials *d, struct outlook *outlooks, bool loud);
void doctor_trials_fini(struct doctor_trials *d);
