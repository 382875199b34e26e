/* suite: scenarios run one after another, each with its control run, judged and reported. */
#pragma once

#include "harness/judge/verdict.h"
#include "harness/run/control.h"
#include "harness/scenario/generate.h"
#include "reports/headway.h"

struct suite_options {
    const char *out;         /* the folder that run directories are made in */
    const char *format;      /* a report's name, for standard output */
    const char *bin;         /* the folder of our programs */
    const char *const *sets; /* key=value as given with --set, NULL-ended; NULL: none */
    bool keep, strict, pcap;
    bool interactive, paused; /* it takes faults by hand: harness/run/hand.h */
    bool beside;  /* one of several side by side: what concerns all of them has been said */
    bool alone;   /* without a control run: nothing is compared, and no report is made */
    bool brief;   /* a status line where there is a terminal; the caller prints what came of it */
    bool control; /* nothing but the control run, which others are made beside */
    bool ahead;   /* a control run for others, each of which tells what is wrong with it */
    bool fresh;   /* make the control run although its result is in the cache */
    const char *place; /* live.h: which of several it is, "2 of 6"; NULL: the only one */
    int64_t place_left_ns;
    const char *verb; /* that plays it, for whom its headway is told; NULL: run */
    struct headway_wish wish;
    int64_t until_ns;     /* run.h: on the monotonic clock; 0: a run has its own limits only */
    const char *coverage; /* coverage.h: what the run is compared with; NULL: nothing */
};

/* Runs one plan: control run (or its cached result), the run, verdict, reports. Prints what a
 * person wants to see; returns the exit code of one scenario. err is set for 3 when nothing could
 * be judged. */
int suite_run(const struct plan *p, const struct suite_options *o, struct err *err);

/* What the job needs first (job.build): from the cache, or made. EXIT_PASS, or EXIT_BROKEN with err. */
int suite_build(const struct plan *p, const struct suite_options *o, struct err *err);

/* The control run alone, after what is built for it, or its cached result (ret->cached), into dir/control. Returns EXIT_PASS,
 * or the exit code with err set, and the job's last lines printed. */
int suite_control(const struct plan *p, const struct suite_options *o, const struct folder *dir,
                  struct control *ret, struct err *err);

/* What runs side by side share: its build and its control run, where the cache has none (or fresh is
 * set), before the first of them is started. What it leaves in out is gone afterwards; one that
 * fails is left for its run to tell. Returns EXIT_PASS, or EXIT_INTERRUPTED. */
int suite_prepare(const struct plan *p, const struct suite_options *o);

/* Whether what it expects is measured by the control run's pace: one that was made beside others is none for it. */
bool suite_judges_pace(const struct scenario *s);

/* What a generated scenario needs to know of a control run. */
struct generate_run suite_generate_run(const struct control *c);

/* The folder that this program lies in, with the others of ours. */
const char *suite_bin(struct arena *a);

/* Makes out/NAME-SEED-TIME, and says in err how another place is named. The caller closes it. */
int suite_make_dir(const char *out, const char *name, uint64_t seed, struct folder *ret,
                   struct err *err);

/* Between which rates, 0 to 1, of failures the true one lies with 95 % confidence when n > 0 runs
 * gave so many (Wilson's score interval, which is right for few runs and for none that fail). */
void suite_failure_rate(size_t failed, size_t n, double *ret_low, double *ret_high);

/* The exit code of many: the first of 130, 1, 5, 3, 2 that any of them gave; 4 only when all were
 * skipped; else 0. */
int suite_exit_code(const int *codes, size_t n);
