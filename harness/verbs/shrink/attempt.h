/* attempt: one scenario that may fail as the recorded run did, really run, each time in a process
 * of its own (`rankquake run`), as often as it takes to know; a line is printed for each. */
#pragma once

#include "harness/shrink/reduction.h"
#include "harness/verbs/shrink/failure.h"
#include "reports/headway.h"

#include <signal.h>

struct attempts {
    struct arena *arena;
    const char *out; /* the folder of all that is made */
    uint64_t seed;
    struct found_failure *failure;
    int64_t runs, needed; /* each is run at most so often; it fails when so many of them do */
    int64_t until_ns;     /* no run is begun after it; 0: no limit */
    const volatile sig_atomic_t *signalled;
    struct headway headway; /* of attempts; how many there will be nobody knows */
    bool quiet;

    /* What came of it. */
    int made, runs_made;    /* attempts; runs of them */
    bool interrupted, late; /* a signal; the time was up */
    int broken_code;        /* of a run that could not be judged, the exit code; 0: none */
    const char *broken;     /* why, NULL */
    const char *best_dir;   /* of the newest run that failed in the same way, NULL: none did */
};

/* For reduction_spec.try; arg is the attempts. A scenario that does not load, or cannot be planned,
 * is passed over without a line. */
enum delta_answer attempt_make(void *arg, const struct scenario *s, const char *what);
