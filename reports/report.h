/* report: renders a recorded run. One file per report, one const struct, one line in reports.h.
 * A report reads history and verdict only; it judges nothing. */
#pragma once

#include "base/buf.h"
#include "base/sys/folder.h"
#include "harness/history/history.h"
#include "harness/history/rounds.h"
#include "harness/judge/recording.h"

struct report_style { /* of the terminal it goes to; zero for a file */
    bool color;       /* NO_COLOR and TERM=dumb are respected */
    bool unicode;     /* the locale is UTF-8 */
    int width;        /* columns; 0: no terminal, lines are as long as they are */
    bool still;       /* a terminal on which no line can be written over */
    bool whole_words; /* a word that is longer than a line stands out of it, to be copied */
};

/* What the environment and the terminal behind out (if it is one) say. */
struct report_style report_style_of(FILE *out);

struct report {
    const char *name, *summary;
    const char *file; /* its name in the run directory; NULL: only printed */
    int (*render)(const struct recorded_run *r, const struct report_style *style, struct buf *out,
                  struct err *err);
};

/* "passed", "failed", "inconclusive" ...: what an exit code means, in one word or two. */
const char *report_outcome(int exit_code);
/* The same as the finding it is shown like. */
enum finding_status report_status(int exit_code);

extern const struct report *const reports[]; /* alphabetical, NULL-ended */
const struct report *report_find(const char *name);
/* Renders and prints to out, in the style that suits it. */
int report_print(const struct report *report, const struct recorded_run *r, FILE *out,
                 struct err *err);
/* Writes every report that has a file into the run directory; all are tried, the first error is
 * returned. */
int reports_write(const struct recorded_run *r, struct err *err);
