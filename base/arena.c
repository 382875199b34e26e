#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES_FIRST = 1024, BLOCK_BYTES_MAX = 16 * 1024, ALIGN = 16 };

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(ALIGN) unsigned char bytes[];
};

static struct arena_block *block_new(size_t size) {
    struct arena_block *b = malloc(sizeof(*b) + size);
    if (!b)
        abort();
    b->used = 0;
    b->size = size;
    return b;
}

/* Blocks double, so that what holds little costs little. */
static void grow(struct arena *a, size_t size) {
    size_t next = a->head ? a->head->size * 2 : BLOCK_BYTES_FIRST;
    next = next < BLOCK_BYTES_MAX ? next : BLOCK_BYTES_MAX;
    struct arena_block *b = block_new(size > next ? size : next);
    b->next = a->head;
    a->head = b;
}

static void *take(struct arena *a, size_t size) {
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (!a->head || a->head->size - a->head->used < size)
        grow(a, size);
    void *p = a->head->bytes + a->head->used;
    a->head->used += size;
    return p;
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
        struct arena_block *b = a->head;
        a->head = b->next;
        free(b);
    }
}

void arena_clear(struct arena *a) {
    struct arena_block *newest = a->head;
    if (!newest)
        return;
    a->head = newest->next;
    arena_fini(a);
    newest->next = NULL;
    newest->used = 0;
    a->head = newest;
}
