/* worth_scenario: a scenario of trouble that was never tried, of the job of a recorded run. Private
 * to this folder. */
#pragma once

#include "harness/scenario/generate.h"
#include "harness/trend/worth.h"

struct worth_job {
    struct arena arena;
    struct scenario base; /* of the run, without faults */
    struct generated cluster;
    struct generate_run run;
    struct generate_moment moment;
    bool resumes; /* the job tells when it has loaded */
};

/* -ERANGE: the job is too short, in a sentence. The run must outlive it. */
int worth_job_take(struct worth_job *ret, const struct recorded_run *run, struct err *err);
void worth_job_fini(struct worth_job *j);

/* For struct worth_filter, arg: a worth_job. Whether a scenario can be written of it, that loads and
 * has a plan here. */
bool worth_is_written(const void *job, const struct worth *w);
/* The scenario. */
void worth_write(const struct worth_job *j, const struct worth *w, struct buf *out);
/* "clock-jump-rank-0-saving", in the arena. */
const char *worth_name(struct worth_job *j, const struct worth *w);
/* Both run the same command. */
bool worth_same_job(const struct scenario *a, const struct scenario *b);
