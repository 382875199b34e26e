/* curve: several runs of one sweep as a picture: goodput, recovery and lost work over the value that
 * was swept.
 *
 * A curve judges nothing. A figure is drawn of a run that passed; any other run is a sign below the
 * axis, never a number. A rendering is a file of this folder that ends in `const struct curve_report
 * curve_NAME` and a line below. */
#pragma once

#include "reports/report.h"

enum curve_measure { CURVE_GOODPUT, CURVE_RECOVERY, CURVE_LOST_WORK, CURVE_MEASURES };

struct curve_run {
    const char *value; /* of the swept key, as it was set */
    double x;          /* the same as a number; the place in order where it is none */
    int64_t seed;
    int exit_code;
    const char *dir;
    double y[CURVE_MEASURES]; /* NAN: not known; per cent, ms, steps */
};

struct curve {
    struct arena arena;
    const char *name, *about; /* of the scenario, without the point */
    const char *key;          /* that was swept: "vars.delay" */
    bool numbers, log;        /* how x is drawn */
    struct curve_run *runs;   /* by x, then by seed */
    size_t n;
    void *sets; /* until curve_settle */
};

struct curve_report {
    const char *name;
    void (*render)(const struct curve *c, const struct report_style *style, struct buf *out);
};

#define CURVE_REPORTS(X)                                                                           \
    X(html)                                                                                        \
    X(markdown)                                                                                    \
    X(svg)                                                                                         \
    X(terminal)

#define X(name) extern const struct curve_report curve_##name;
CURVE_REPORTS(X)
#undef X
extern const struct curve_report *const curve_reports[]; /* NULL-ended */
const struct curve_report *curve_report_find(const char *name);

/* Takes figures and overrides out of a run; dir must outlive c. */
void curve_add(struct curve *c, const struct recorded_run *run, const char *dir);
/* Finds the one key in which the runs differ. -EINVAL: they are no sweep of one key. */
int curve_settle(struct curve *c, struct err *err);
void curve_fini(struct curve *c);

/* "1ms" is 1e6, "50%" 50, "2k" 2000; false: it is no number with a unit that is known. */
bool curve_number(const char *text, double *ret);
const char *curve_title(enum curve_measure m); /* "goodput, % of the control run" */
/* "64 %", "812 ms", "12"; "-" where it is not known. */
void curve_put_figure(const struct curve_run *r, enum curve_measure m, struct buf *out);
/* Of a run that passed, and the figure is known. */
bool curve_is_drawn(const struct curve_run *r, enum curve_measure m);
/* Some run has it. */
bool curve_has(const struct curve *c, enum curve_measure m);
/* How many runs from i on have its value. */
size_t curve_same(const struct curve *c, size_t i);
/* The median of those drawn; NAN: none is. */
double curve_median(const struct curve *c, size_t i, size_t n, enum curve_measure m);
