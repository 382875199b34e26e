/* printing: standard output and standard error, through which everything that our programs say
 * goes: whatever somebody else wrote is made fit for a terminal there (base/printable.h), so
 * that no place that prints a name or a message has to remember it.
 *
 * What goes around it: descriptors that are written to directly, with which a launcher passes on
 * what its job prints. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct hidden;

/* From here on, for stdout and stderr of this process; before anything is printed. */
void printing_begin(void);

/* As it is, what is made of our own controls and of text that is printable already (a page with
 * colours). False, with errno, when it could not be written. */
bool printing_put(FILE *out, const char *text, size_t n);

/* A line that quotes names of files or what else may hold a line feed: it stays one line. */
void printing_line(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The descriptor behind out; -1: there is none. */
int printing_fd(FILE *out);

/* From here on these texts are covered in all that goes this way; NULL: none. The end of what is
 * printed may wait for what follows it. They stay the caller's and outlive the process. */
void printing_hide(const struct hidden *h);

/* Whether somebody sees it as it is written. */
bool printing_at_terminal(FILE *out);
/* From here on nobody does: some CI servers lend a job a terminal that no one looks at. */
void printing_be_plain(void);
