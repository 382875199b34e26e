#include "base/pool.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 32 * 1024, ALIGN = 16 };

#if defined(__SANITIZE_ADDRESS__)
#define WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WATCHED 1
#endif
#endif
#ifndef WATCHED
#define WATCHED 0
#endif

struct pool_piece {
    struct pool_piece *next;
};

struct pool_chunk {
    struct pool_chunk *next;
    _Alignas(ALIGN) char bytes[CHUNK_BYTES];
};

static void *checked(void *memory) {
    if (!memory)
        abort(); /* out of memory */
    return memory;
}

/* Which sizes the pool has itself: 1 to 32 is 0, 33 to 64 is 1. */
static size_t place_of(size_t size) {
    return size ? (size - 1) / POOL_STEP : 0;
}

static void *piece_new(struct pool *p, size_t bytes) {
    if (p->left < bytes) {
        struct pool_chunk *c = checked(malloc(sizeof(*c)));
        c->next = p->chunks;
        p->chunks = c;
        p->free = c->bytes;
        p->left = CHUNK_BYTES;
    }
    void *piece = p->free;
    p->free += bytes;
    p->left -= bytes;
    return piece;
}

void *pool_take(struct pool *p, size_t size) {
    size_t place = place_of(size);
    if (WATCHED || place >= POOL_SIZES)
        return checked(malloc(size));
    struct pool_piece *piece = p->spare[place];
    if (!piece)
        return piece_new(p, (place + 1) * POOL_STEP);
    p->spare[place] = piece->next;
    return piece;
}

void pool_give(struct pool *p, void *memory, size_t size) {
    size_t place = place_of(size);
    struct pool_piece *piece = memory;
    if (WATCHED || place >= POOL_SIZES || !memory) {
        free(memory);
        return;
    }
    piece->next = p->spare[place];
    p->spare[place] = piece;
}

void pool_fini(struct pool *p) {
    while (p->chunks) {
        struct pool_chunk *c = p->chunks;
        p->chunks = c->next;
        free(c);
    }
    memset(p, 0, sizeof(*p));
}
