#include "agent/base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 16 * 1024, ALIGN = 16 };

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(ALIGN) unsigned char bytes[];
};

static struct arena_block *block_new(size_t size) {
    struct arena_block *b = calloc(1, sizeof(*b) + size);
    if (!b)
        abort();
    b->size = size;
    return b;
}

void *arena_alloc(struct arena *a, size_t size) {
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (!a->head || a->head->size - a->head->used < size) {
        struct arena_block *b = block_new(size > BLOCK_BYTES ? size : BLOCK_BYTES);
        b->next = a->head;
        a->head = b;
    }
    void *p = a->head->bytes + a->head->used;
    a->head->used += size;
    return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t n) {
    char *p = arena_alloc(a, n + 1);
    memcpy(p, s, n);
    return p;
}

char *arena_strdup(struct arena *a, const char *s) {
    return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *p = arena_alloc(a, (size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
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
    while (a->head && a->head->next) {
        struct arena_block *b = a->head;
        a->head = b->next;
        free(b);
    }
    if (!a->head)
        return;
    memset(a->head->bytes, 0, a->head->used);
    a->head->used = 0;
}
