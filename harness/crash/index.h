/* index: finds numbers by the hash of what they stand for. Who asks compares: equal hashes are
 * candidates alone. {0} is an empty one. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct crash_index {
    struct crash_index_row {
        uint64_t hash;
        size_t number; /* plus one; 0: free */
    } * v;
    size_t n, cap;
};

/* Of bytes; mix chains them: hash of a, then of b. */
uint64_t crash_index_hash(uint64_t mix, const void *p, size_t n);

void crash_index_put(struct crash_index *x, uint64_t hash, size_t number);
/* The candidates one after the other: *at is 0 for the first. SIZE_MAX: no more. */
size_t crash_index_next(const struct crash_index *x, uint64_t hash, size_t *at);
void crash_index_clear(struct crash_index *x); /* keeps the memory */
void crash_index_fini(struct crash_index *x);
