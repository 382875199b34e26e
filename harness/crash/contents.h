/* contents: what files hold, as runs over the bytes of a record: nothing is copied, and nothing is
 * hashed twice. Equal contents have one number, however they came to be. Pure. */
#pragma once

#include "faults/mechanism/disk_record.h"
#include "harness/crash/index.h"
#include "harness/crash/states.h"

/* What a file is made of, in order: parts of writes, and what else changes its shape. */
struct crash_piece {
    size_t operation;
    uint64_t from, to; /* of a write: the bytes [from, to) of the file; from == to: none */
    uint64_t size;     /* the file has grown to this much at least */
};

struct crash_content {
    struct crash_run *runs;
    size_t runs_n;
    uint64_t size, bytes; /* bytes: without holes */
    uint32_t digest[8];   /* SHA-256 of the size and of its blocks that are not all zero */
};

struct crash_contents {
    const struct disk_record *record;
    struct crash_content *v;
    size_t n;
    struct crash_recipe { /* pieces that were put together before */
        struct crash_piece *pieces;
        size_t pieces_n, content;
    } * recipes;
    size_t recipes_n;
    struct crash_block {        /* the same for blocks of a file */
        struct crash_run *runs; /* `at` within the block */
        size_t runs_n;
        uint64_t size;
        bool zero;
        uint32_t digest[8];
    } * blocks;
    size_t blocks_n;
    struct crash_index by_pieces, by_digest, by_block;
};

/* The number of the content that the pieces make. */
size_t crash_contents_of(struct crash_contents *c, const struct crash_piece *pieces, size_t n);
void crash_contents_fini(struct crash_contents *c);

enum { CRASH_BLOCK_BYTES = 64 * 1024 };
/* One by one, as crash_content has it: a file that lies elsewhere has the same digest. */
struct sha256;
void crash_contents_begin(struct sha256 *s, uint64_t size);
/* Block i, size of it; nothing where all of them are zero. */
void crash_contents_block(struct sha256 *s, uint64_t i, const unsigned char *bytes, size_t size);
void crash_contents_end(struct sha256 *s, uint32_t ret[8]);
