/* pattern: a regular expression on one line of output, and the values it takes out of it.
 *
 * POSIX extended regular expressions, matched by the C library, with what people write by habit
 * from Python and Perl: \d \D \s \S \w \W \b, (?:...) for a group that is no value, (?P<name>...)
 * for one with a name (which is not used), (?i) at the beginning for either case. What the library
 * would silently take for something else (lazy repetition, \1, looking ahead) is refused. Matching
 * is by bytes: a line need not be UTF-8. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { PATTERN_TEXT_MAX = 1000, PATTERN_VALUES_MAX = 3 };

struct pattern;

/* A part of the line that was matched; at NULL: that group took no part. */
struct pattern_value {
    const char *at;
    size_t len;
};

/* Returns NULL with a sentence in err that names the expression and where in it the mistake is. */
struct pattern *pattern_new(const char *text, struct err *err);
struct pattern *pattern_free(struct pattern *p); /* NULL is allowed; returns NULL */

size_t pattern_values(const struct pattern *p); /* how many groups are values; may be too many */
/* values may be NULL. */
bool pattern_match(const struct pattern *p, const char *line,
                   struct pattern_value values[PATTERN_VALUES_MAX]);

/* How much of what the expression demands literally stands in the line, in that order: for telling
 * which of many lines was nearly meant. 0: nothing. */
size_t pattern_nearness(const struct pattern *p, const char *line);
