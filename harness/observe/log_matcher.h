/* log_matcher: the lines that a scenario expects, or hopes never to see (expect.log).
 *
 * Each that matches becomes a record log, of source job or launcher, whoever printed it and
 * whenever: who counts, and when, is the judge's business. Of a program that says one thing for
 * ever the first ten thousand lines are recorded, and the rest counted. */
#pragma once

#include "harness/observe/observe.h"
#include "harness/scenario/scenario.h"

struct log_matcher;

/* NULL: nothing is expected. rec and x must outlive it. */
struct log_matcher *log_matcher_new(struct recorder *rec, const struct expect *x);
struct log_matcher *log_matcher_free(struct log_matcher *m); /* NULL is allowed; returns NULL */

/* A line, printed by a worker or (pid 0) by the program of a node. NULL is allowed. */
void log_matcher_heard(struct log_matcher *m, const char *node, pid_t pid, const char *line);
/* Writes what was read, and what matched, into the history: kind lines. NULL is allowed. */
void log_matcher_end(struct log_matcher *m);

/* Records a line and who waited for it: key is "id", of an entry of the timeline, or "pattern". */
void log_matcher_record(struct recorder *rec, const char *node, pid_t pid, const char *key,
                        const char *value, const char *line);
