/* crash_points: what a job made of every state that a death could leave its directory in, as a
 * table for a terminal, a page and JUnit XML. */
#pragma once

#include "reports/page.h"

enum crash_point_verdict {
    CRASH_POINT_UNTRIED,
    CRASH_POINT_EQUAL,   /* resumed, and became the same, bit for bit */
    CRASH_POINT_BAND,    /* resumed, with another result within the loss band */
    CRASH_POINT_RESUMED, /* resumed; results of this job cannot be compared */
    CRASH_POINT_LOST,    /* from an older checkpoint than was necessary */
    CRASH_POINT_FAILED,  /* did not start */
    CRASH_POINT_DIVERGED,
    CRASH_POINT_HUNG,
    CRASH_POINT_VERDICTS
};
/* "resumed bit-equal", "lost work" ... */
extern const char *const crash_point_words[CRASH_POINT_VERDICTS];
enum finding_status crash_point_status(enum crash_point_verdict v);
/* The worse of two. */
enum crash_point_verdict crash_point_worse(enum crash_point_verdict a, enum crash_point_verdict b);

enum { CRASH_POINT_DEATHS = 3 };
extern const char *const crash_point_deaths[CRASH_POINT_DEATHS]; /* process, kernel, power */

struct crash_point_row { /* after so many operations */
    size_t point;
    const char *operation; /* the last that was done, in words */
    const char *kind;      /* its short name */
    double at_s;           /* when, from the first one */
    int rank;
    size_t save; /* from 1; 0: none */
    enum crash_point_verdict worst[CRASH_POINT_DEATHS];
    size_t states[CRASH_POINT_DEATHS]; /* that were tried */
    const char *why;                   /* of the worst: a sentence; "" */
};

enum crash_point_verdict crash_point_row_worst(const struct crash_point_row *r);

struct crash_point_finding {
    enum crash_point_verdict verdict;
    const char *sentence, *missing, *seen, *fix, *repeat, *look;
    size_t states; /* that have this reason */
};

struct crash_points {
    const char *title, *command;
    const char *const *facts; /* sentences about the record and the bounds; NULL-ended */
    const struct crash_point_row *rows;
    size_t rows_n;
    const struct crash_point_finding *findings;
    size_t findings_n;
    size_t counts[CRASH_POINT_VERDICTS][CRASH_POINT_DEATHS]; /* of ways */
    int exit_code;
};

void crash_points_put(const struct crash_points *p, const struct report_style *style,
                      struct buf *out);
void crash_points_html(const struct crash_points *p, struct buf *out);
void crash_points_junit(const struct crash_points *p, struct buf *out);
