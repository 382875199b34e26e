/* html: report.html, one page that shows a run to somebody who has two minutes.
 *
 * The page needs nothing but itself: no other file, no network, and what little script it has only
 * adds a line under the pointer. Pictures are drawn in a box of HTML_X by 100 units that is
 * stretched over the width of the page; texts stand beside or above them and are never stretched.
 * All of them share one axis of time, from the first record to the end of the job.
 *
 * Whatever comes from a run is a %s of html_put, which escapes it. Long runs are thinned out, so
 * that a page stays below 2 MB. */
#pragma once

#include "reports/report.h"

enum {
    HTML_X = 10000,         /* units of the axis of time */
    HTML_FAULTS = 40,       /* drawn with a number and a recovery of their own */
    HTML_FAULTS_SEEN = 2000 /* drawn at all */
};

struct html_bar { /* a worker's life */
    const struct worker *worker;
    struct html_point {
        int64_t t_ns, step;
    } * points; /* some of its steps: first, last and every stride-th between */
    size_t points_n, seen, stride;
};

struct html {
    struct buf *out;
    const struct recorded_run *run;
    struct incidents incidents;
    int64_t begin_ns, end_ns; /* of the axis */
    int64_t last_step;        /* the highest that any worker made, at least 1 */
    struct html_bar *bars;    /* of all workers, by node, place on it and start */
    size_t bars_n;
    const char **nodes; /* of the cluster, in order */
    size_t nodes_n;
    struct arena arena; /* owns bars and nodes */
};

/* ---- html_write.c: what is put on the page ---- */

void html_put(struct html *h, const char *fmt, ...) /* escape_printf */
    __attribute__((format(printf, 2, 3)));
/* A term and what it is, of a list of those; nothing where there is no text. */
void html_labelled(struct html *h, const char *label, const char *text);
/* A time as a place on the axis: 0 to HTML_X, and in per cent. */
int html_x(const struct html *h, int64_t t_ns);
double html_percent(const struct html *h, int64_t t_ns);
/* "937 ms", "12.3 s", "4 min 10 s". */
void html_duration(struct html *h, int64_t ns);
void html_bound(struct html *h, int64_t bound_ns); /* " ± 0.4 ms", or nothing */
const char *html_plural(size_t n);                 /* "" or "s" */
/* The class of a finding's colour, and its sign. */
const char *html_tone(enum finding_status s);
const char *html_mark(enum finding_status s);

/* ---- the parts of the page, from top to bottom ---- */

extern const char html_style[], html_script[];
void html_head(struct html *h);       /* verdict, what is wrong, the command, figures */
void html_timeline(struct html *h);   /* the picture of the run ... */
void html_lanes(struct html *h);      /* ... its nodes and workers ... */
void html_curves(struct html *h);     /* ... workers running and loss, below them */
void html_recoveries(struct html *h); /* every fault and what recovering from it took */
void html_checks(struct html *h);
void html_rounds(struct html *h);
void html_clocks(struct html *h);  /* of hosts that have one of their own */
void html_trouble(struct html *h); /* what was tried in which phase, and what was not */

/* ---- what the picture of the page and that of svg.c share ---- */

/* Seconds between two ticks of the axis: 1, 2 or 5 times a power of ten, 5 to 12 parts of it. */
double html_tick_seconds(const struct html *h);
/* Whether a fault ended the worker. */
bool html_was_hit(const struct html *h, const struct worker *w);
/* Whether the fault took the node, or was lasting and in force on it; and until when. */
bool html_took_away(const struct incident *f, const char *node);
int64_t html_away_until(const struct html *h, const struct incident *f, const char *node);

/* ---- html_bars.c ---- */

/* Fills all that follows incidents from the run. */
void html_bars(struct html *h);
/* Both were on one node, with one local rank. */
bool html_same_lane(const struct worker *a, const struct worker *b);
/* When its last worker ended; the end of the axis while one had not. */
int64_t html_round_end(const struct html *h, const struct round *r);
