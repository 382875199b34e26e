#include "base/arena.h"

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

void *arena_alloc(struct arena *a, size_t size) {
    size_t room = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (!a->head || a->head->size - a->head->used < room)
        grow(a, room);
    void *p = a->head->bytes + a->head->used;
    a->head->used += room;
    return memset(p, 0, size);
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
