/* hidden: texts that nobody may read in what we write, such as the values of tokens. They are covered
 * with stars of the same length, so that what is around them stays what it was: a line of JSON is
 * still one, and an offset still holds. {0} hides nothing. */
#pragma once

#include "base/texts.h"

struct hidden {
    struct texts texts;
    size_t longest; /* bytes */
};

/* Shorter ones would cover half of every page. */
enum { HIDDEN_MIN = 6 };

/* Takes a copy; what is shorter than HIDDEN_MIN or there already is left out. */
void hidden_add(struct hidden *h, const char *text);
/* Covers all of them in the n bytes at data, overlapping ones too; returns how many were found. */
size_t hidden_cover(const struct hidden *h, char *data, size_t n);
/* Bytes at the end of data that may be the beginning of one: whoever takes text in pieces keeps them
 * for the next. */
size_t hidden_unfinished(const struct hidden *h, const char *data, size_t n);
void hidden_fini(struct hidden *h);
#define HIDDEN_FINI __attribute__((cleanup(hidden_fini)))
