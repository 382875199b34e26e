/* judged: what the reports for CI servers need of a run, taken out of it so that its history can be let
 * go: there may be hundreds of runs to be told in one file. */
#pragma once

#include "base/arena.h"
#include "reports/report.h"

struct judged_fault {
    const char *id, *fault, *targets;
    int64_t detect_ns, recover_ns; /* below 0: not known */
};

struct judged {
    const char *name; /* of the scenario */
    const char *file; /* story_file */
    const char *sets; /* what overrides the file: runs with the same name and sets are alike */
    const char *dir;  /* of the run, "" where there is none */
    uint64_t seed;
    int exit_code;
    bool forgiven;   /* it failed, and repeat.failures allows that */
    const char *why; /* it has no verdict: what happened, in one sentence; else "" */
    double duration_s;
    struct finding *v; /* what was found; check is the arena's */
    size_t n;
    const char *command, *version, *launcher, *isolation, *lost, *loud;
    const char **clocks; /* NAME, text, .. of hosts with a clock of their own; NULL-ended */
    struct judged_fault *faults;
    size_t faults_n;
    const char
        *output; /* the last lines of the worker whose failure came last, else of its agent */
    const char
        *output_of; /* its file, in the run directory; "": of a run that failed there is none */
};

/* Everything is the arena's, also dir, which need not be run->dir. */
void judged_take(struct judged *ret, const struct recorded_run *run, const char *dir,
                 struct arena *a);
/* Of one that has no verdict. */
void judged_missing(struct judged *ret, const char *name, const char *file, int exit_code,
                    const char *why);
size_t judged_count(const struct judged *j, enum finding_status status);

/* Several runs that are alike, and one check of them. */
struct judged_check {
    const char *name;
    size_t runs, failed;         /* that have it; that did not pass it, unknown or failed */
    size_t passed;               /* skipped is neither */
    const struct finding *shown; /* the first that did not pass, else the first */
    bool forgiven;               /* all that did not pass are */
};

/* v points to n runs that are alike. False: no run has a k-th check. */
bool judged_check(const struct judged *const *v, size_t n, size_t k, struct judged_check *ret);
/* What a run found there; NULL: it does not have it. */
const struct finding *judged_finding(const struct judged *j, const char *check);
/* It passed and it did not. */
bool judged_is_flaky(const struct judged_check *c);
/* The rate of failures, and between which the true one lies with 95 % confidence (Wilson). */
struct judged_rate {
    double rate, low, high;
};
struct judged_rate judged_rate(size_t failed, size_t n);
/* "failed in 2 of 20 runs: 10 %, between 2 % and 31 % (95 % confidence)" */
void judged_put_rate(const struct judged_check *c, struct buf *out);
/* What was seen, behind the rate of one that is flaky, and what was expected. */
void judged_put_check(const struct judged_check *c, struct buf *out);
