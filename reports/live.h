/* live: a run as it happens, for whoever watches. On a terminal one line at the bottom that is
 * written over, with what is worth remembering printed above it; elsewhere only the latter.
 *
 * It is fed every record of a history, in order, and must end before that history does. */
#pragma once

#include "reports/report.h"

struct live;

/* title: what is running ("control run, once", "worker-killed"). total_steps: of the job, for the
 * progress bar; 0 when it is not known. */
struct live *live_new(FILE *out, const struct report_style *style, const char *title,
                      int64_t total_steps);
/* From now on nothing is printed but the line at the bottom. */
void live_be_brief(struct live *l);
void live_record(struct live *l, const struct record *r);
/* Takes the status line away and frees; NULL is allowed; returns NULL. */
struct live *live_end(struct live *l);
