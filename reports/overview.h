/* overview: several runs of one job beside each other, a row for each: as a table for a terminal,
 * and as a page whose links lead to the reports. */
#pragma once

#include "reports/page.h"

struct overview_row {
    const char *name; /* "node-killed" */
    const char *link; /* its folder, from the page's; NULL: it was not run */
    int exit_code;    /* of the run */
    char what[200];   /* what happened, in some five words */
    int64_t detect_ns, recover_ns, lost_steps; /* -1: none, or not known */
    bool over_before;                          /* the job ended well before the fault's moment */
    char check[32];                            /* the one that decided, "" */
    char expected[200], seen[300], where[500];
};

/* A check that needs to be told something by the job. */
struct overview_open {
    const char *check;
    bool judged;   /* in one run at least */
    char why[200]; /* what it was skipped for, "": it was not */
};
enum { OVERVIEW_OPEN = 4 };

struct overview {
    const char *title, *command; /* what was tried, as it was typed */
    struct overview_row *rows;
    size_t rows_n;
    struct overview_open open[OVERVIEW_OPEN]; /* filled by overview_read */
    bool steps;                               /* some worker reported steps */
    const char *const *fix; /* what would let more be judged, sentences; NULL-ended */
};

/* For people also where there is no terminal: 80 columns, and paths in one piece. */
struct report_style overview_style(FILE *out);
/* Fills the row (what ... where) from a run, and adds to o what it could not judge. */
void overview_read(struct overview *o, struct overview_row *row, const struct recorded_run *run);
/* The table, then what did not pass, then what was not judged. */
void overview_put(const struct overview *o, const struct report_style *style, struct buf *out);
/* One line of what has just ended, laid out as the table is. */
void overview_put_ended(const char *name, int exit_code, const char *what,
                        const struct report_style *style, struct buf *out);
/* "937 ms", "12.3 s", "-" */
void overview_put_time(struct buf *out, int64_t ns);
/* The i-th check that no run could judge, from 0; NULL: there are no more. */
const struct overview_open *overview_not_judged(const struct overview *o, size_t i);
void overview_html(const struct overview *o, struct buf *out);
