/* alterations: every other line that a line of a recorded history might have been. */
#pragma once

#include "base/arena.h"
#include "base/rand.h"

#include <stddef.h>

struct alterations {
    struct arena *arena; /* of the lines that are made */
    char *const *lines;
    size_t n;
    /* instead: what stands in its place, one line or two; NULL: none. what: a word for that. */
    void (*take)(void *arg, const char *what, const char *instead);
    void *arg;
};

/* The line is not there, or twice. Each of its numbers is one more and one less, each word is another,
 * each value is missing, or the one that another record has there, and another source tells it. It is much earlier, much later, and
 * in the same moment as each of so many records on either side of it. */
void alterations_of(const struct alterations *a, size_t line, size_t neighbours);

/* One of its numbers, drawn, is something else entirely: none, below 0, a small one, much more, much less, the most that
 * there is, or one that another drawn line has. Returns the line; NULL: it has no number. */
const char *alterations_wild(const struct alterations *a, size_t line, struct rand *r);

/* The next number that a line holds, but for its own time, from there on, or from its begin; where it begins, without its sign. NULL: it holds no
 * more. ret_len: of how many digits. */
const char *alterations_number(const char *line, const char *from, size_t *ret_len);
