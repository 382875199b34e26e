/* recoveries: what a forecast needs to know of a job, out of recorded runs: how long it takes to
 * train again after each kind of fault, and what its saves cost. */
#pragma once

#include "faults/hazards.h"
#include "harness/judge/recording.h"

struct recoveries {
    struct recovery {
        char fault[32];
        double *v; /* seconds from the fault to training again, of each that ended a round */
        size_t n;
    } * v;
    size_t n;
    double *saves; /* seconds from the begin of a save to its commit, of one worker */
    size_t saves_n;
    double *gaps; /* seconds of work between saves */
    size_t gaps_n;
    double *steps; /* seconds of a step, of each run without its faults */
    size_t steps_n;
    int nodes; /* the most that a run had */
};

void recoveries_add(struct recoveries *r, const struct recorded_run *run);
void recoveries_fini(struct recoveries *r);

/* Medians, in seconds; NAN: no run had one. */
double recoveries_save(const struct recoveries *r);
double recoveries_interval(const struct recoveries *r);
double recoveries_step(const struct recoveries *r);
double recovery_median(const struct recovery *r);
/* The mean time to train again when faults come in these proportions; of those that were measured.
 * *ret_known is their part of the whole, 0 to 1, where none is, the plain mean of all that were
 * measured is returned. NAN: none was measured. */
double recoveries_restart(const struct recoveries *r, const struct hazards *mix, double *ret_known);
