/* bounds: an arena (base/arena.h) in place of the one that a program has, where its memory is watched: by valgrind (watched.py), or by the
 * sanitizers in a unit test (tests/mutate). There what is given out lies side by side in blocks, so that a byte too far is a neighbour's, or
 * nobody's; here each piece ends where it ends, and who reads or writes behind it is told.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the head of an arena is here. */
struct bounded {
    struct bounded *next;
    void *piece;
};

static void *take(struct arena *a, size_t size) {
    struct bounded *b = malloc(sizeof(*b));
    void *piece = malloc(size); /* of none too */
    if (!b || !piece)
        abort();
    *b = (struct bounded){(struct bounded *)a->head, piece};
    a->head = (struct arena_block *)b;
    return piece;
}

void *arena_alloc(struct arena *a, size_t size) {
    return memset(take(a, size), 0, size);
}

char *arena_strndup(struct arena *a, const char *s, size_t n) {
    char *p = take(a, n + 1);
    memcpy(p, s, n);
    p[n] = '\0';
    return p;
}

char *arena_strdup(struct arena *a, const char *s) {
    return arena_strndup(a, s, strlen(s));
}

char *arena_vprintf(struct arena *a, const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *p = take(a, (size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *p = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return p;
}

void arena_fini(struct arena *a) {
    while (a->head) {
        struct bounded *b = (struct bounded *)a->head;
        a->head = (struct arena_block *)b->next;
        free(b->piece);
        free(b);
    }
}

void arena_clear(struct arena *a) {
    arena_fini(a);
}
