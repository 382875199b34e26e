/* jobs: runs side by side, each in a process of its own (`rankquake run FILE --seed N ...`). What
 * each prints is kept and shown whole when it ends. Those in which times are judged run alone,
 * after the others: beside another one they would measure that. */
#pragma once

#include "base/err.h"
#include "harness/scenario/scenario.h"

struct job {
    const char *file;
    const char *const *sets; /* KEY=VALUE for --set, NULL-ended; NULL: none */
    uint64_t seed;
    bool alone;
    int64_t
        expected_ns; /* how long it may take: what takes longest is started first, and what takes
                          * the same in the order of the list */
    const char *printed; /* the file that what it prints is added to; NULL: see jobs_run */
    int code;            /* its exit code, once it has run; below 0: it has not */
    bool late;           /* until_ns came before its end; its code is EXIT_INTERRUPTED */
};

struct jobs_spec {
    int at_once;                /* at most so many at a time */
    const char *const *options; /* what each is given besides, NULL-ended */
    int64_t until_ns;           /* on the monotonic clock: those that run then are ended; 0: none */
    /* Told before and after the output of one that has ended is printed; NULL: nobody is. */
    void (*shown)(void *arg, const struct job *j, bool before);
    void (*ended)(void *arg, struct job *j); /* in place of printing its output; NULL: print it */
    void *arg;
};

/* A scenario with a time in its timeline or a bound on one in what it expects. */
bool job_must_be_alone(const struct scenario *s);

/* Runs those whose code is below 0. When interrupted it passes the signal on, waits, and starts no
 * more; those that it was passed to have the code EXIT_INTERRUPTED, also when they ended by
 * themselves at that moment. Returns 0 or a -errno. */
int jobs_run(struct job *jobs, size_t n, const struct jobs_spec *spec, struct err *err);
