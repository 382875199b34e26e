/* outage: what failures cost a job that saves every so often. **Pure.** All times are seconds.
 *
 * Work goes on in segments of `interval`, each followed by a save that takes `save` and during which
 * nothing else is done. Failures come at random, on average one in `mtbf`, also while it saves and
 * while it starts again. One costs what was done since the last save, and `restart`; one during a
 * start begins that anew. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct outage_job {
    double mtbf, save, restart; /* mtbf above 0 */
    double
        shape; /* of the gaps between failures (Weibull): 1 is Poisson's process, below they come in
                   * clusters */
};

/* The parts of all time; their sum is 1. */
struct outage_cost {
    double work; /* goodput: what is in the model in the end */
    double saving, lost, restarting;
    double error; /* standard error of work, where it was simulated */
};

/* Exact for shape 1, whatever the shape is. */
struct outage_cost outage_expect(const struct outage_job *j, double interval);
/* The interval with the most work; exact for shape 1. */
double outage_best_interval(const struct outage_job *j);
/* What Young's formula has for it, the root of 2 * save * mtbf: near where save is short. */
double outage_young_interval(const struct outage_job *j);
/* Work that a failure costs on average, without the start. */
double outage_lost_each(const struct outage_job *j, double interval);

/* Lives through so many failures, drawn by the seed. */
struct outage_cost outage_simulate(const struct outage_job *j, double interval, size_t failures,
                                   uint64_t seed);
