/* failure: what failed in a recorded run, and how another run compares with it. */
#pragma once

#include "base/arena.h"
#include "harness/judge/recording.h"
#include "reports/report.h"

struct found_failure {
    const char **checks; /* that must fail; NULL-ended */
    const char **all;    /* that failed in the recorded run, whether they must or not */
    const char *way;     /* in which the outcome was wrong, "it failed"; "": another check */
    bool counted;        /* all of them count what exactly the timeline comes to: it must stay */
    bool unfired; /* faults that did not happen are no other failure, until one run has all */
};

/* checks: those that are asked for, NULL-ended; none: all that failed, but those that count what
 * exactly the faults come to where there are others. All of it lives in the arena. Returns 0, or
 * -EINVAL with why there is nothing to make smaller. */
int failure_read(struct arena *a, const struct recording *r, const char *const *checks,
                 struct found_failure *ret, struct err *err);

enum comparison_answer { FAILS_SAME, FAILS_OTHERWISE, PASSES, INCONCLUSIVE, BROKEN, INTERRUPTED };

/* What a verdict is beside that failure; `why` gets the checks that say so, "" for the first. */
enum comparison_answer failure_compare(const struct found_failure *f, const struct verdict *v,
                                       struct buf *why);
/* From a run in which all faults happened, or that had none that did not. */
bool failure_fired(const struct verdict *v);
