#include "harness/crash/contents.h"

#include "base/mem.h"
#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>

enum { KEEP_SIZE = 1, PUNCH = 2 }; /* of fallocate */

static const unsigned char zeros[CRASH_BLOCK_BYTES];

/* ---- putting pieces together ---- */

struct patchwork {
    struct crash_run *v;
    size_t n;
    uint64_t size;
};

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* The first run that ends behind at. */
static size_t run_at(const struct patchwork *d, uint64_t at) {
    size_t low = 0, high = d->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (d->v[mid].at + d->v[mid].size <= at)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Replaces what is in [from, to) by new, if there is one. */
static void replace(struct patchwork *d, uint64_t from, uint64_t to, const struct crash_run *new) {
    struct crash_run put[3];
    size_t puts = 0, first = run_at(d, from), last = first;
    while (last < d->n && d->v[last].at < to)
        last++;
    if (first < last && d->v[first].at < from) {
        put[puts] = d->v[first];
        put[puts++].size = from - d->v[first].at;
    }
    if (new)
        put[puts++] = *new;
    if (first < last && d->v[last - 1].at + d->v[last - 1].size > to) {
        struct crash_run r = d->v[last - 1];
        put[puts++] = (struct crash_run){to, r.at + r.size - to, r.bytes + (to - r.at)};
    }
    size_t tail = d->n - last;
    for (size_t i = 0; i < 3; i++) /* room */
        (void)(mem_push(d->v, d->n) = (struct crash_run){0});
    memmove(d->v + first + puts, d->v + last, tail * sizeof(*d->v));
    memcpy(d->v + first, put, puts * sizeof(*put));
    d->n = first + puts + tail;
}

static void shape(struct patchwork *d, const struct disk_operation *o) {
    uint64_t end = o->offset + o->size;
    if (o->deed == DISK_TRUNCATE) {
        d->size = o->offset;
        replace(d, o->offset, UINT64_MAX, NULL);
        return;
    }
    if (o->mode & ~(unsigned)KEEP_SIZE && end > o->offset)
        replace(d, o->offset, end, NULL);
    if (!(o->mode & (KEEP_SIZE | PUNCH)) && end > d->size)
        d->size = end;
}

static void put_piece(struct patchwork *d, const struct disk_record *record,
                      const struct crash_piece *p) {
    const struct disk_operation *o = &record->v[p->operation];
    if (o->deed == DISK_TRUNCATE || o->deed == DISK_ALLOCATE) {
        shape(d, o);
        return;
    }
    uint64_t at = o->deed == DISK_HAD ? 0 : o->offset;
    if (p->from < p->to)
        replace(d, p->from, p->to,
                &(struct crash_run){p->from, p->to - p->from, o->bytes + (p->from - at)});
    d->size = p->size > d->size ? p->size : d->size;
}

/* What lies behind the end nobody sees. */
static void clip(struct patchwork *d) {
    while (d->n && d->v[d->n - 1].at >= d->size)
        d->n--;
    if (d->n)
        d->v[d->n - 1].size = least(d->v[d->n - 1].size, d->size - d->v[d->n - 1].at);
}

/* ---- hashing ---- */

static void put_number(struct sha256 *s, uint64_t n) {
    unsigned char b[8];
    for (int i = 0; i < 8; i++)
        b[i] = (unsigned char)(n >> (8 * i));
    sha256_update(s, b, sizeof(b));
}

static void finish(struct sha256 *s, uint32_t ret[8]) {
    char hex[65];
    sha256_hex(s, hex);
    memcpy(ret, s->h, sizeof(s->h));
}

static void put_block(struct sha256 *s, uint64_t i, const uint32_t digest[8]) {
    put_number(s, i);
    for (int k = 0; k < 8; k += 2)
        put_number(s, (uint64_t)digest[k] << 32 | digest[k + 1]);
}

void crash_contents_begin(struct sha256 *s, uint64_t size) {
    sha256_init(s);
    put_number(s, size);
}

void crash_contents_block(struct sha256 *s, uint64_t i, const unsigned char *bytes, size_t size) {
    struct sha256 block;
    uint32_t digest[8];
    if (!memcmp(bytes, zeros, size))
        return;
    sha256_init(&block);
    sha256_update(&block, bytes, size);
    finish(&block, digest);
    put_block(s, i, digest);
}

void crash_contents_end(struct sha256 *s, uint32_t ret[8]) {
    finish(s, ret);
}

static bool all_zero(const struct crash_run *runs, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (memcmp(runs[i].bytes, zeros, runs[i].size) != 0)
            return false;
    return true;
}

static void hash_block(struct crash_block *b) {
    struct sha256 s;
    uint64_t at = 0;
    b->zero = all_zero(b->runs, b->runs_n);
    if (b->zero)
        return;
    sha256_init(&s);
    for (size_t i = 0; i < b->runs_n; i++) {
        sha256_update(&s, zeros, b->runs[i].at - at);
        sha256_update(&s, b->runs[i].bytes, b->runs[i].size);
        at = b->runs[i].at + b->runs[i].size;
    }
    sha256_update(&s, zeros, b->size - at);
    finish(&s, b->digest);
}

/* The runs of a file within a block, which begins at `at`. */
static const struct crash_block *block_of(struct crash_contents *c, const struct crash_run *runs,
                                          size_t n, uint64_t size) {
    uint64_t h = crash_index_hash(size, runs, n * sizeof(*runs));
    size_t at = 0, i;
    while ((i = crash_index_next(&c->by_block, h, &at)) != SIZE_MAX)
        if (c->blocks[i].size == size && c->blocks[i].runs_n == n &&
            !memcmp(c->blocks[i].runs, runs, n * sizeof(*runs)))
            return &c->blocks[i];
    struct crash_block b = {mem_array(struct crash_run, n), n, size};
    memcpy(b.runs, runs, n * sizeof(*runs));
    hash_block(&b);
    mem_push(c->blocks, c->blocks_n) = b;
    crash_index_put(&c->by_block, h, c->blocks_n - 1);
    return &c->blocks[c->blocks_n - 1];
}

/* The parts of runs from *i on, *done bytes of it, that lie in a block. */
static size_t gather(const struct crash_content *f, uint64_t block, size_t *i, uint64_t *done,
                     struct crash_run **part) {
    uint64_t from = block * CRASH_BLOCK_BYTES, to = from + CRASH_BLOCK_BYTES;
    size_t n = 0;
    for (; *i < f->runs_n && f->runs[*i].at + *done < to; ++*i, *done = 0) {
        const struct crash_run *r = &f->runs[*i];
        uint64_t at = r->at + *done, end = least(r->at + r->size, to);
        mem_push(*part, n) = (struct crash_run){at - from, end - at, r->bytes + *done};
        if (end < r->at + r->size) {
            *done = end - r->at;
            break;
        }
    }
    return n;
}

static void hash_runs(struct crash_contents *c, struct crash_content *f) {
    struct sha256 s;
    struct crash_run *part = NULL;
    uint64_t done = 0; /* of run i, in blocks before this one */
    crash_contents_begin(&s, f->size);
    for (size_t i = 0; i < f->runs_n;) {
        uint64_t block = (f->runs[i].at + done) / CRASH_BLOCK_BYTES;
        size_t n = gather(f, block, &i, &done, &part);
        const struct crash_block *b =
            block_of(c, part, n, least(CRASH_BLOCK_BYTES, f->size - block * CRASH_BLOCK_BYTES));
        if (!b->zero)
            put_block(&s, block, b->digest);
    }
    free(part);
    crash_contents_end(&s, f->digest);
}

/* ---- finding them again ---- */

static size_t content_of(struct crash_contents *c, const struct crash_piece *pieces, size_t n) {
    struct patchwork d = {0};
    size_t at = 0, i;
    for (i = 0; i < n; i++)
        put_piece(&d, c->record, &pieces[i]);
    clip(&d);
    struct crash_content f = {.runs = d.v, .runs_n = d.n, .size = d.size};
    for (i = 0; i < d.n; i++)
        f.bytes += d.v[i].size;
    hash_runs(c, &f);
    uint64_t h = crash_index_hash(f.size, f.digest, sizeof(f.digest));
    while ((i = crash_index_next(&c->by_digest, h, &at)) != SIZE_MAX)
        if (c->v[i].size == f.size && !memcmp(c->v[i].digest, f.digest, sizeof(f.digest))) {
            free(f.runs);
            return i;
        }
    mem_push(c->v, c->n) = f;
    crash_index_put(&c->by_digest, h, c->n - 1);
    return c->n - 1;
}

size_t crash_contents_of(struct crash_contents *c, const struct crash_piece *pieces, size_t n) {
    uint64_t h = crash_index_hash(n, pieces, n * sizeof(*pieces));
    size_t at = 0, i;
    while ((i = crash_index_next(&c->by_pieces, h, &at)) != SIZE_MAX)
        if (c->recipes[i].pieces_n == n &&
            (!n || !memcmp(c->recipes[i].pieces, pieces, n * sizeof(*pieces))))
            return c->recipes[i].content;
    struct crash_recipe r = {mem_array(struct crash_piece, n + 1), n, content_of(c, pieces, n)};
    if (n)
        memcpy(r.pieces, pieces, n * sizeof(*pieces));
    mem_push(c->recipes, c->recipes_n) = r;
    crash_index_put(&c->by_pieces, h, c->recipes_n - 1);
    return r.content;
}

void crash_contents_fini(struct crash_contents *c) {
    for (size_t i = 0; i < c->n; i++)
        free(c->v[i].runs);
    for (size_t i = 0; i < c->recipes_n; i++)
        free(c->recipes[i].pieces);
    for (size_t i = 0; i < c->blocks_n; i++)
        free(c->blocks[i].runs);
    free(c->v);
    free(c->recipes);
    free(c->blocks);
    crash_index_fini(&c->by_pieces);
    crash_index_fini(&c->by_digest);
    crash_index_fini(&c->by_block);
    *c = (struct crash_contents){0};
}
