/* printable: text that somebody else wrote, made fit for a terminal and for a page.
 *
 * Names, keys, messages and lines of logs come from files, jobs and servers that we do not trust. A
 * terminal obeys what it finds in them: it moves, erases, hides, and shows text in another order
 * than it stands. What could do so is spelled out instead: control characters as \x1b (\n, \t and
 * \r as such), the controls beyond ASCII, those of direction and whatever cannot be seen as \u202e
 * or \U000e0001, and a byte that belongs to no character of UTF-8 as \xff. All else stays as it is,
 * a backslash too: what is spelled out is for eyes, and nothing reads it back. It follows that
 * nothing changes a second time. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

enum {
    PRINTABLE_LINES = 1,  /* line feeds and tabs stay: the text may have several lines */
    PRINTABLE_COLORS = 2, /* sequences that change nothing but colours stay (ESC [ ... m) */
};
enum { PRINTABLE_MAX = 32 };

/* Whether a character may be shown as it is. */
bool printable_is(unsigned c);

/* The first of the n (at least 1) bytes at s: returns how many belong together, and in ret, ended
 * by a NUL, what is shown for them. how: of the bits above. */
size_t printable_next(const char *s, size_t n, int how, char ret[PRINTABLE_MAX]);

void printable_put(struct buf *out, const char *s, size_t n, int how);
/* A string as part of a line. */
void printable_puts(struct buf *out, const char *s);
/* The same into room of a fixed size, without allocating; what does not fit is left out. s lies
 * elsewhere. */
void printable_copy(char *ret, size_t size, const char *s);

/* Bytes at the end of s that may be the beginning of a character, 0 to 3: whoever takes text in
 * pieces keeps them for the next. */
size_t printable_unfinished(const char *s, size_t n);
