/* live: a run as it happens, for whoever watches. On a terminal one line at the bottom that is
 * written over, with what is worth remembering printed above it; elsewhere only the latter.
 *
 * It is fed every record of a history, in order, and must end before that history does. */
#pragma once

#include "reports/headway.h"
#include "reports/report.h"

struct live;

/* title: what is running ("control run, once", "worker-killed"). total_steps: of the job, for the
 * progress bar; 0 when it is not known. */
struct live *live_new(FILE *out, const struct report_style *style, const char *title,
                      int64_t total_steps);
/* From now on nothing is printed but the line at the bottom. */
void live_be_brief(struct live *l);
/* From now on nothing is shown at all. */
void live_be_quiet(struct live *l);
/* Which of several runs it is, "2 of 6", which must outlive this, and how long all that are left take, this
 * one with them; NULL: it is the only one. -1: nobody knows. */
void live_place(struct live *l, const char *place, int64_t left_ns);
/* Its steps are told to a program, too (headway.h). */
void live_tell(struct live *l, const struct headway_wish *wish, const char *verb);
void live_record(struct live *l, const struct record *r);
/* Takes the status line away and frees; NULL is allowed; returns NULL. */
struct live *live_end(struct live *l);
