/* str: reading values out of text. Nothing here allocates but str_split. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

bool str_eq(const char *a, const char *b); /* NULL equals only NULL */
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
bool str_in(const char *s, const char *const *names); /* NULL-ended */

/* The whole of s is a decimal number in [min, max]; else false and *ret untouched. */
bool str_to_i64(const char *s, int64_t min, int64_t max, int64_t *ret);

/* "250ms", "2s", "1.5s", "5m", "1h"; a bare number is refused. Returns 0, or -EINVAL with a
 * sentence that shows the forms. */
int str_to_duration_ns(const char *s, int64_t *ret_ns, struct err *err);

/* Of a path the part behind the last slash; all of it when nothing stands there. */
const char *str_base(const char *path);

/* Copies src and always ends it; false when it did not fit. */
bool str_copy(char *dst, size_t size, const char *src);

/* Cuts s at every sep; returns a NULL-ended array in the arena, *ret_n its length (may be NULL). */
char **str_split(struct arena *a, const char *s, char sep, size_t *ret_n);

/* The nearest of the NULL-ended names by edit distance, or NULL when none is near: "did you mean".
 */
const char *str_nearest(const char *s, const char *const *names);
