/* texts: a list of strings that it owns. {0} is an empty one. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct texts {
    char **v; /* NULL-ended; NULL: nothing was ever added */
    size_t n;
};

/* Takes over a text of the heap. */
void texts_take(struct texts *t, char *text);
void texts_add(struct texts *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool texts_has(const struct texts *t, const char *text);
/* The list, NULL-ended also when it is empty. */
const char *const *texts_list(const struct texts *t);
void texts_fini(struct texts *t);
#define TEXTS_FINI __attribute__((cleanup(texts_fini)))
