/* comparison: the same scenarios under several launchers, side by side: what came of each, how long
 * recovery took, and for every difference the checks that explain it.
 *
 * A comparison judges nothing: it shows verdicts. A rendering of it is a file of this folder that
 * ends in `const struct comparison_report comparison_NAME` and a line below. */
#pragma once

#include "reports/report.h"

struct comparison_launcher {
    const char *name;    /* of its column: "torchrun@sid" */
    const char *words;   /* as a scenario names it: "torchrun" */
    const char *rootfs;  /* NULL: the host's */
    const char *version; /* "torch 2.14.1, Python 3.14", "" when it is not known */
};

struct comparison_cell {
    int exit_code;   /* of the run */
    bool judged;     /* there is a verdict: what follows is filled */
    const char *why; /* one sentence of a run that came to no verdict, "" */
    const char *dir; /* the run directory, as seen from the comparison's folder; NULL: none */
    int64_t took_ns; /* the whole run, control run included */
    int64_t detect_ns, recover_ns; /* the longest of its faults; -1: none, or not known */
    bool stayed_down;              /* a fault ended a round, and no complete round followed it */
    struct verdict verdict;
};

struct comparison_row {
    const char *scenario, *about;
    struct comparison_cell *cells; /* one for each launcher */
};

struct comparison {
    const char *command; /* that makes it again */
    const struct comparison_launcher *launchers;
    size_t launchers_n;
    struct comparison_row *rows;
    size_t rows_n;
};

struct comparison_report {
    const char *name, *summary;
    const char *file; /* its name in the comparison's folder; NULL: only printed */
    void (*render)(const struct comparison *c, const struct report_style *style, struct buf *out);
};

#define COMPARISON_REPORTS(X)                                                                      \
    X(html)                                                                                        \
    X(json)                                                                                        \
    X(terminal)

#define X(name) extern const struct comparison_report comparison_##name;
COMPARISON_REPORTS(X)
#undef X
extern const struct comparison_report *const comparison_reports[]; /* NULL-ended */
const struct comparison_report *comparison_report_find(const char *name);

/* Takes the verdict and the times out of a run that was judged. */
void comparison_read(struct comparison_cell *cell, const struct recorded_run *run);

/* "passed, 2.1 s", "failed, stayed down": what stands in a cell. */
void comparison_put_cell(const struct comparison_cell *cell, struct buf *out);

/* What a check said of a cell; NULL: it was not judged, or does not have it. */
const struct finding *comparison_finding(const struct comparison_cell *cell, const char *check);
/* The names of the checks of which the launchers differ, and at least one has not passed, in the
 * order in which they were judged; returns how many. */
enum { COMPARISON_CHECKS_MAX = 64 };
size_t comparison_differences(const struct comparison_row *row, size_t launchers_n,
                              const char *ret[COMPARISON_CHECKS_MAX]);
