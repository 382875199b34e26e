/* seeds: many seeds, in several processes side by side. What comes of a seed does not depend on how
 * many there are. */
#pragma once

#include "base/err.h"
#include "harness/invariants/invariants.h"
#include "harness/sim/sim.h"

enum { SEEDS_FAILED_MAX = 8, SEEDS_MINUTE_S = 60, SEEDS_ROUNDS = 3, SEEDS_FAULTS = 5 };

struct seeds_tally {
    uint64_t seeds, steps, rounds, faults, transactions, succeeded, failed_jobs, violated;
    int64_t virtual_ns;
    /* A seed counts when it is a minute of virtual time or more, with SEEDS_ROUNDS rounds or more.
     */
    uint64_t counting;
    int64_t least_ns, least_rounds, least_faults; /* of any seed */
    uint64_t marks[SIM_MARKS_N];                  /* seeds that reached it */
    uint64_t risked[INVARIANTS_N];                /* seeds that could have broken it */
    uint32_t decisions[DECISIONS_N];              /* seeds that reached it */
    struct {
        uint64_t seed;
        int64_t at_ns; /* virtual */
        char text[256];
    } failed[SEEDS_FAILED_MAX]; /* the lowest seeds first */
    int failed_n;
};

struct seeds_spec {
    struct sim_config config; /* its seed is not used */
    uint64_t first, last;
    int jobs; /* processes */
    /* Told several times a second of all that is done; return false to stop. May be NULL. */
    bool (*seen)(void *arg, const struct seeds_tally *t);
    void *arg;
};

/* Returns 0, -ECANCELED when it was stopped, or an error: a process died. *ret holds what was done.
 * SIGINT and SIGTERM are let through while it waits; a handler of them is followed by `seen`. */
int seeds_run(const struct seeds_spec *s, struct seeds_tally *ret, struct err *err);
