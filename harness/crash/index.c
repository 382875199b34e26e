#include "harness/crash/index.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static uint64_t stir(uint64_t x) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93U;
    x ^= x >> 29;
    x *= 0xd6e8feb86659fd93U;
    return x ^ x >> 32;
}

uint64_t crash_index_hash(uint64_t mix, const void *p, size_t n) {
    const unsigned char *q = p;
    uint64_t h = stir(mix + 0x9e3779b97f4a7c15U * (n + 1)), word;
    for (; n >= sizeof(word); q += sizeof(word), n -= sizeof(word)) {
        memcpy(&word, q, sizeof(word));
        h = stir(h ^ word) + 0x9e3779b97f4a7c15U;
    }
    word = 0;
    if (n)
        memcpy(&word, q, n);
    return stir(h ^ word);
}

static void place(struct crash_index *x, uint64_t hash, size_t number) {
    size_t i = hash & (x->cap - 1);
    while (x->v[i].number)
        i = (i + 1) & (x->cap - 1);
    x->v[i] = (struct crash_index_row){hash, number};
}

static void grow(struct crash_index *x) {
    struct crash_index old = *x;
    x->cap = old.cap ? old.cap * 2 : 64;
    x->v = mem_array(struct crash_index_row, x->cap);
    for (size_t i = 0; i < old.cap; i++)
        if (old.v[i].number)
            place(x, old.v[i].hash, old.v[i].number);
    free(old.v);
}

void crash_index_put(struct crash_index *x, uint64_t hash, size_t number) {
    if (x->n * 2 >= x->cap)
        grow(x);
    place(x, hash, number + 1);
    x->n++;
}

size_t crash_index_next(const struct crash_index *x, uint64_t hash, size_t *at) {
    for (; x->cap && *at < x->cap; ++*at) {
        const struct crash_index_row *row = &x->v[(hash + *at) & (x->cap - 1)];
        if (!row->number)
            break;
        if (row->hash == hash) {
            ++*at;
            return row->number - 1;
        }
    }
    return SIZE_MAX;
}

void crash_index_clear(struct crash_index *x) {
    if (x->n)
        memset(x->v, 0, x->cap * sizeof(*x->v));
    x->n = 0;
}

void crash_index_fini(struct crash_index *x) {
    free(x->v);
    *x = (struct crash_index){0};
}
