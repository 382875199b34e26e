/* start: the job of a scenario started once, undisturbed, in its cluster, and nothing judged. */
#pragma once

#include "harness/history/rounds.h"
#include "harness/plan/plan.h"

struct start_spec {
    const struct scenario *scenario; /* its timeline and what is expected are left out */
    uint64_t seed;
    const struct folder *run; /* the run directory; must outlive the end */
    const char *disks;        /* as in struct plan */
    const char *bin;          /* the folder of our programs */
};

struct start_end {
    struct scenario scenario;
    struct plan *plan;
    struct history history;
    struct rounds rounds;
};

/* Returns 0 when the history tells the whole story, else a -errno; -ENOTSUP: this host cannot. What
 * is told by then is in *ret either way: start_end_fini. */
int start_once(const struct start_spec *s, struct start_end *ret, struct err *err);
void start_end_fini(struct start_end *e);

/* The job has ended by itself, and all agents with 0. */
bool start_ended_well(const struct start_end *e);
/* Of a job that nothing disturbed: whose end was the first that was not well, asked by nobody. A later
 * round may have begun before the harness ended the job. NULL: nobody's. */
const struct worker *start_failed(const struct rounds *rs);
