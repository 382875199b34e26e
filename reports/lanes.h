/* lanes: a run for whoever watches it: one lane for each rank, in which its workers start, train and
 * end, the faults, and the last of what happened. Fed every record of a history, in order; drawn as a
 * frame of a terminal, or as an object for a page.
 *
 * The records must outlive it. */
#pragma once

#include "reports/live.h"

enum { LANES_NOTES = 8, LANES_MAX = 1024 };

struct lanes;

/* strict: as in rounds.h. */
struct lanes *lanes_new(bool strict);
struct lanes *lanes_free(struct lanes *l); /* NULL is allowed; returns NULL */
void lanes_record(struct lanes *l, const struct record *r);
/* What is printed line by line where there is no frame; out is the caller's. Before the first record. */
void lanes_print_to(struct lanes *l, FILE *out);
/* What stands behind the title: "control run", "paused at step 20", "over"; copied. */
void lanes_say_state(struct lanes *l, const char *state);
/* At most `rows` lines of at most style->width columns, each ended by a line feed. */
void lanes_frame(const struct lanes *l, const struct report_style *style, int rows,
                 struct buf *out);
void lanes_object(const struct lanes *l, struct buf *out);
/* The last record of a run has come. */
bool lanes_over(const struct lanes *l);
