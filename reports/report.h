/* report: renders a recorded run. One file per report, one const struct, one line in reports.h.
 * A report reads history and verdict only; it judges nothing. */
#pragma once

#include "agent/base/buf.h"
#include "harness/history.h"
#include "harness/rounds.h"
#include "harness/verdict.h"

struct report_style { /* of the terminal it goes to; zero for a file */
    bool color;
    int width; /* columns; 0: unknown */
};

struct recorded_run {
    const char *dir;
    const struct scenario *scenario;
    const struct history *history;
    const struct rounds *rounds;
    const struct verdict *verdict;
};

struct report {
    const char *name, *summary;
    const char *file; /* its name in the run directory; NULL: only printed */
    int (*render)(const struct recorded_run *r, const struct report_style *style, struct buf *out,
                  struct err *err);
};

extern const struct report *const reports[]; /* alphabetical, NULL-ended */
const struct report *report_find(const char *name);
