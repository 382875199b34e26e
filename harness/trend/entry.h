/* entry: what one run has shown, kept for long: a line of a trend file.
 *
 * Times are milliseconds. A measure that the run did not have is not there. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "harness/judge/recording.h"

#include <stdint.h>

enum { TREND_VERSION = 1, TREND_MEASURES_MAX = 4096 };

/* Where a run was made, and of what. */
struct trend_origin {
    const char *commit, *branch;
    const char *machine; /* runs are compared with those of the same label alone */
};

struct trend_measure {
    const char *name; /* "job", "step", "goodput" (per cent), "kill/recover", "kill/detect" ... */
    double value;
};

struct trend_entry {
    const char *id;  /* a hash of its history: the same run is kept once */
    int64_t time_ns; /* of the wall clock, when the history was written last */
    struct trend_origin origin;
    const char *scenario, *launcher, *version;
    int64_t seed;
    int exit_code;             /* of the verdict */
    const char *check;         /* the check that decided it, "" */
    double calibration_ms;     /* mean time of the calibration's computation; 0: not measured */
    double calibration_spread; /* standard deviation of its times, over that mean */
    const struct trend_measure *v;
    size_t n;
};

/* Takes it out of a recorded run. Texts live in a or in the run. -errno when its history cannot be
 * read again. */
int trend_entry_take(struct trend_entry *ret, struct arena *a, const struct recorded_run *run,
                     const struct trend_origin *origin, struct err *err);
/* A line without its end. */
void trend_entry_put(const struct trend_entry *e, struct buf *out);
/* Reads one. -EBADMSG: what is wrong with it, as a part of a sentence. */
int trend_entry_parse(struct trend_entry *ret, struct arena *a, const char *text, size_t len,
                      struct err *err);
/* NAN: it has no such measure. */
double trend_entry_measure(const struct trend_entry *e, const char *name);
/* Of the verdict: times are compared of those that passed. */
bool trend_entry_passed(const struct trend_entry *e);
