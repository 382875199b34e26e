/* jobs: runs side by side, each in a process of its own (`rankquake run FILE --seed N ...`). What
 * each prints is kept and shown whole when it ends. Those in which times are judged run alone,
 * after the others: beside another one they would measure that. */
#pragma once

#include "agent/base/err.h"
#include "harness/scenario/scenario.h"

struct job {
    const char *file;
    const char *const *sets; /* KEY=VALUE for --set, NULL-ended; NULL: none */
    uint64_t seed;
    bool alone;
    const char *printed; /* the file that what it prints is added to; NULL: see jobs_run */
    int code;            /* its exit code, once it has run; below 0: it has not */
};

/* A scenario with a time in its timeline or a bound on one in what it expects. */
bool job_must_be_alone(const struct scenario *s);

/* Runs those whose code is below 0, at most at_once at a time. options: what each is given besides,
 * NULL-ended. ended: told of each in place of printing its output; NULL: print it. When interrupted
 * it passes the signal on, waits, and starts no more; those that it was passed to have the code
 * EXIT_INTERRUPTED, also when they ended by themselves at that moment. Returns 0 or a -errno. */
int jobs_run(struct job *jobs, size_t n, int at_once, const char *const *options,
             void (*ended)(void *arg, struct job *j), void *arg, struct err *err);
