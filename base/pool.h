/* pool: pieces of memory that are taken and given back by the thousand.
 *
 * A piece that was given back is the next one of its size to be taken: no search, and memory that
 * is still in the cache. Pieces come from chunks that the pool keeps until its end, large ones from
 * malloc. Allocation never fails (out of memory aborts); what is in a piece is not set. {0} is an
 * empty pool. Under the address sanitizer every piece is malloc's own, so that it is watched. */
#pragma once

#include <stddef.h>

enum { POOL_STEP = 32, POOL_SIZES = 32 }; /* sizes up to 1024 are the pool's own */

struct pool {
    struct pool_piece *spare[POOL_SIZES]; /* by size, in steps */
    struct pool_chunk *chunks;
    char *free;  /* of the newest chunk */
    size_t left; /* bytes */
};

/* Aligned to 16. */
void *pool_take(struct pool *p, size_t size);
/* size: the same as when it was taken. NULL is allowed. */
void pool_give(struct pool *p, void *piece, size_t size);
/* All pieces must have been given back; leaves an empty pool. */
void pool_fini(struct pool *p);
