/* point: one place of a source, and what stands there in the mutant. */
#pragma once

#include "tests/mutate/source.h"

#include <stdint.h>

struct point {
    char *path, *function;
    const char *operator; /* of the table */
    size_t offset, length;
    char *text; /* what stands there instead */
    unsigned line;
    /* FILE:FUNCTION:OPERATOR:HASH:NUMBER. The hash is over what stands there and over what shall, white space aside, the
     * number counts those that are alike in a function: what is changed elsewhere gives it no other name. */
    char *identity;
};

struct points {
    struct point *v;
    size_t n;
};

/* All of one source, in the order of its bytes, added to those that are there. */
void points_find(struct points *p, const struct source *s);
void points_fini(struct points *p);

/* What is known while they are found. */
struct finding {
    struct points *points;
    const struct source *source;
};

/* What an operator finds: instead of what the node is, or of bytes. Texts are formats. */
void find_instead(const struct finding *f, const char *operator, const struct node * n,
                  const char *text, ...) __attribute__((format(printf, 4, 5)));
void find_bytes(const struct finding *f, const char *operator, const struct node * holder,
                size_t begin, size_t end, const char *text, ...)
    __attribute__((format(printf, 6, 7)));
/* As "%.*s". */
#define NODE_TEXT(s, n) (int)((n)->end - (n)->begin), (s)->text.data + (n)->begin

/* The source with the mutant in it, appended to out: with as many lines as before. */
void point_apply(const struct point *p, const struct source *s, struct buf *out);
