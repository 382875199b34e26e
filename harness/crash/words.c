#include "harness/crash/words.h"

#include "base/mem.h"
#include "base/printable.h"
#include "base/str.h"
#include "harness/crash/barriers.h"
#include "harness/crash/search.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LOST_SHOWN = 4 };

size_t crash_words_number(const struct crash_states *s, size_t operation) {
    size_t had = s->search->changes.had;
    return operation < had ? 0 : operation - had + 1;
}

void crash_words_many(double n, struct buf *out) {
    if (n > 1e15)
        buf_puts(out, "more than 10^15");
    else
        buf_printf(out, "%.0f", n);
}

/* ---- operations ---- */

void crash_words_path(const char *path, struct buf *out) {
    if (path && *path)
        buf_printf(out, "`%s`", path);
    else
        buf_puts(out, "the directory itself");
}

static const char *name(const char *path) {
    return path && *path ? path : "the directory itself";
}

/* Of what is said by one word and a path. */
static const char *const plain_words[DISK_DEEDS_N] = {
    [DISK_CREATE] = "create",     [DISK_MKDIR] = "mkdir",
    [DISK_UNLINK] = "unlink",     [DISK_RMDIR] = "rmdir",
    [DISK_ALLOCATE] = "allocate", [DISK_SYNC] = "fsync",
    [DISK_OPEN] = "open",         [DISK_SYNC_DATA] = "fdatasync",
    [DISK_CLOSE] = "close",       [DISK_SYNC_RANGE] = "sync_file_range",
};

void crash_words_operation(const struct disk_operation *o, struct buf *out) {
    const char *path = name(o->path), *to = name(o->to);
    if ((unsigned)o->deed < DISK_DEEDS_N && plain_words[o->deed]) {
        buf_printf(out, "%s of %s", plain_words[o->deed], path);
        return;
    }
    switch (o->deed) {
    case DISK_HAD:
        buf_printf(out, "%s was there", path);
        break;
    case DISK_SYMLINK:
        buf_printf(out, "symlink of %s to %s", path, to);
        break;
    case DISK_LINK:
        buf_printf(out, "link of %s as %s", path, to);
        break;
    case DISK_RENAME:
        buf_printf(out, "rename of %s to %s", path, to);
        break;
    case DISK_EXCHANGE:
        buf_printf(out, "exchange of %s and %s", path, to);
        break;
    case DISK_WRITE:
        buf_printf(out, "write of %" PRIu64 " bytes at %" PRIu64 " to %s", o->size, o->offset,
                   path);
        break;
    case DISK_TRUNCATE:
        buf_printf(out, "truncate of %s to %" PRIu64 " bytes", path, o->offset);
        break;
    case DISK_MODE:
        buf_printf(out, "chmod of %s to %o", path, o->mode);
        break;
    case DISK_SYNC_ALL:
        buf_puts(out, "sync of everything");
        break;
    case DISK_MARK:
        if (barriers_is(o)) {
            buf_puts(out, "wait for the other ranks");
            break;
        }
        buf_printf(out, "the job's word \"%s\"", o->path ? o->path : "");
        break;
    case DISK_CREATE:
    case DISK_MKDIR:
    case DISK_UNLINK:
    case DISK_RMDIR:
    case DISK_ALLOCATE:
    case DISK_SYNC:
    case DISK_SYNC_DATA:
    case DISK_SYNC_RANGE:
    case DISK_OPEN:
    case DISK_CLOSE:
    case DISK_DEEDS_N:
        break;
    }
}

/* ---- deaths ---- */

static void put_rows(unsigned models, struct buf *out) {
    const char *sep = " on ";
    for (size_t i = 0; i < DISK_MODELS_N; i++) {
        if (!(models >> i & 1))
            continue;
        buf_printf(out, "%s%s", sep, disk_models[i].name);
        models &= ~(1U << i);
        sep = models & (models - 1) ? ", " : " or ";
    }
}

/* Of several disks that of those where something was lost. */
static void put_models(const struct crash_search *s, const struct crash_way *way, struct buf *out) {
    bool shared = false, own = !s->changes.volumes;
    for (size_t i = 0; i < way->losses_n; i++) {
        bool of_node = s->changes.v[way->losses[i].operation].disk > 0;
        own |= of_node;
        shared |= !of_node;
    }
    if (own)
        put_rows(way->models, out);
    if (shared && s->changes.volumes)
        buf_printf(out, "%s %s for what all nodes share", own ? "," : " on",
                   disk_models[s->ask.shared - 1].name);
}

static const char *node_of_rank(const struct crash_changes *c, int rank) {
    for (size_t i = c->had; i < c->record->n; i++)
        if (c->record->v[i].rank == rank && c->record->v[i].node && *c->record->v[i].node)
            return c->record->v[i].node;
    return NULL;
}

void crash_words_death(const struct crash_states *s, const struct crash_way *way, struct buf *out) {
    bool both = s->search->ask.deaths >> CRASH_POWER & 1;
    if (way->death == CRASH_PROCESS) {
        buf_puts(out, "the death of ");
        if (!way->others_go_on)
            buf_puts(out, s->search->changes.who_n > 1 ? "all processes" : "the process");
        else if (way->rank >= 0) {
            const char *node = node_of_rank(&s->search->changes, way->rank);
            buf_printf(out, "rank %d%s%s", way->rank, node ? " on " : "", node ? node : "");
        } else
            buf_printf(out, "process %d", way->pid);
        return;
    }
    buf_puts(out, both || way->death == CRASH_POWER ? "power loss" : "the death of the kernel");
    if (way->node && *way->node)
        buf_printf(out, " of node %s", way->node);
}

/* ---- losses ---- */

static bool all_bytes(const struct crash_change *g, const struct crash_loss *l) {
    return l->part == CRASH_BYTES && l->from <= g->at && l->to >= g->end;
}

/* The bytes of all its writes go under one name, once. */
static bool told_before(const struct crash_search *s, const struct crash_way *way, size_t k) {
    const struct crash_change *v = s->changes.v;
    const struct crash_loss *l = &way->losses[k];
    for (size_t i = 0; i < k; i++)
        if (v[way->losses[i].operation].inode == v[l->operation].inode &&
            way->losses[i].part != CRASH_ALL && way->losses[i].part != CRASH_REMOVAL)
            return true;
    return false;
}

static size_t lost_of(const struct crash_search *s, const struct crash_way *way, size_t inode,
                      enum crash_part part) {
    size_t n = 0;
    for (size_t i = 0; i < way->losses_n; i++)
        n += s->changes.v[way->losses[i].operation].inode == inode && way->losses[i].part == part;
    return n;
}

static void put_bytes(const struct crash_search *s, const struct crash_way *way, size_t k,
                      struct buf *out) {
    const struct crash_loss *l = &way->losses[k];
    const struct crash_change *g = &s->changes.v[l->operation];
    const char *path = name(s->changes.record->v[l->operation].path);
    size_t many = lost_of(s, way, g->inode, CRASH_BYTES);
    bool sizes = lost_of(s, way, g->inode, CRASH_SIZE);
    if (!many)
        buf_printf(out, "the size of %s", path);
    else if (many == 1 && !all_bytes(g, l))
        buf_printf(out, "bytes %" PRIu64 " to %" PRIu64 " of %s", l->from, l->to - 1, path);
    else
        buf_printf(out, "bytes of %s (%zu %s)", path, many, many == 1 ? "write" : "writes");
    if (many && !sizes)
        buf_puts(out, ", not its size");
}

void crash_words_lost(const struct crash_states *s, const struct crash_way *way, struct buf *out) {
    const struct crash_search *x = s->search;
    size_t told = 0, more = 0;
    for (size_t k = 0; k < way->losses_n; k++) {
        const struct crash_loss *l = &way->losses[k];
        bool names = l->part == CRASH_ALL || l->part == CRASH_REMOVAL;
        if (!names && told_before(x, way, k))
            continue;
        if (told == LOST_SHOWN) {
            more++;
            continue;
        }
        buf_puts(out, told++ ? "; " : "");
        if (l->part == CRASH_REMOVAL)
            buf_puts(out, "that the old name is gone in the ");
        if (names)
            crash_words_operation(&s->record->v[l->operation], out);
        else
            put_bytes(x, way, k, out);
    }
    if (!told)
        buf_puts(out, "nothing");
    if (more)
        buf_printf(out, " and %zu more", more);
}

void crash_words_way(const struct crash_states *s, const struct crash_way *way, struct buf *out) {
    size_t n = way->point > s->search->changes.had ? crash_words_number(s, way->point - 1) : 0;
    if (n) {
        buf_printf(out, "after operation %zu (", n);
        crash_words_operation(&s->record->v[way->point - 1], out);
        buf_puts(out, "), ");
    } else {
        buf_puts(out, "before the first operation, ");
    }
    if (way->taken) {
        buf_printf(out, "%" PRIu64 " bytes into the ", way->taken);
        crash_words_operation(&s->record->v[way->point], out);
        buf_puts(out, ", ");
    }
    crash_words_death(s, way, out);
    if (way->others_go_on)
        buf_puts(out, ", while the others go on to their next barrier");
    if (way->death == CRASH_PROCESS)
        return;
    put_models(s->search, way, out);
    buf_puts(out, ": lost is ");
    crash_words_lost(s, way, out);
}

/* ---- looks ---- */

struct scene {
    struct arena arena;
    struct sight {
        const char *path;
        size_t inode, content;
        unsigned mode;
        enum inode_kind kind;
    } * v;
    size_t n, at;
    struct crash_image *image;
};

static int see(void *arg, const struct crash_entry *e) {
    struct scene *x = arg;
    size_t inode = x->image->reached[x->at + 1];
    mem_push(x->v, x->n) =
        (struct sight){arena_strdup(&x->arena, e->path), inode, x->image->reached[x->at + 2],
                       e->mode, x->image->changes->inodes[inode].kind};
    x->at += 3;
    return 0;
}

static void look_at(struct crash_search *s, const struct crash_way *way, struct scene *ret) {
    *ret = (struct scene){.image = &s->image};
    crash_image_build(&s->image, way);
    crash_image_walk(&s->image, see, ret);
}

static void scene_fini(struct scene *x) {
    free(x->v);
    arena_fini(&x->arena);
}

static const struct sight *sight_of(const struct scene *x, const char *path) {
    for (size_t i = 0; i < x->n; i++)
        if (str_eq(x->v[i].path, path))
            return &x->v[i];
    return NULL;
}

/* The run that covers `at`, or NULL for a hole; *end: up to where it is so. */
static const struct crash_run *run_over(const struct crash_content *f, uint64_t at, size_t *run,
                                        uint64_t *end) {
    while (*run < f->runs_n && f->runs[*run].at + f->runs[*run].size <= at)
        ++*run;
    bool covers = *run < f->runs_n && f->runs[*run].at <= at;
    uint64_t to = *run == f->runs_n ? UINT64_MAX
                  : covers          ? f->runs[*run].at + f->runs[*run].size
                                    : f->runs[*run].at;
    *end = to < *end ? to : *end;
    return covers ? &f->runs[*run] : NULL;
}

/* The first byte in which they differ, within what both have. */
static uint64_t differ_at(const struct crash_content *a, const struct crash_content *b) {
    uint64_t all = a->size < b->size ? a->size : b->size, end;
    size_t i = 0, k = 0;
    for (uint64_t at = 0; at < all; at = end) {
        end = all;
        const struct crash_run *x = run_over(a, at, &i, &end), *y = run_over(b, at, &k, &end);
        if (!x && !y)
            continue;
        for (uint64_t n = at; n < end; n++)
            if ((x ? x->bytes[n - x->at] : 0) != (y ? y->bytes[n - y->at] : 0))
                return n;
    }
    return all;
}

static void put_difference(const char *path, const struct crash_content *is,
                           const struct crash_content *should, struct buf *out) {
    uint64_t at = differ_at(is, should);
    uint64_t end = is->size;
    size_t run = 0;
    crash_words_path(path, out);
    if (!is->size)
        buf_puts(out, " is an empty file");
    else if (!is->bytes)
        buf_printf(out, " has %" PRIu64 " bytes, all of them zero", is->size);
    else if (at == is->size && is->size < should->size)
        buf_printf(out, " has %" PRIu64 " of its %" PRIu64 " bytes", is->size, should->size);
    else if (at < is->size && !run_over(is, at, &run, &end))
        buf_printf(out, " has zeros from byte %" PRIu64 " on", at);
    else
        buf_printf(out, " has other bytes than it should, from byte %" PRIu64 " on", at);
}

/* What the names had before is told as that. */
static bool put_file(const struct crash_search *s, const struct sight *is,
                     const struct sight *should, const struct scene *before, struct buf *out) {
    const struct sight *was = sight_of(before, should->path);
    if (is->content == should->content)
        return false;
    if (was && was->content == is->content) {
        crash_words_path(should->path, out);
        buf_puts(out, " is still the old one");
        return true;
    }
    put_difference(should->path, &s->contents.v[is->content], &s->contents.v[should->content], out);
    return true;
}

static bool put_contents(const struct crash_search *s, const struct scene *is,
                         const struct scene *should, const struct scene *before, struct buf *out) {
    for (size_t i = 0; i < should->n; i++) {
        const struct sight *b = &should->v[i], *a = sight_of(is, b->path);
        if (b->kind == INODE_FILE && a && a->kind == INODE_FILE && put_file(s, a, b, before, out))
            return true;
        if (a && a->kind == INODE_LINK && b->kind == INODE_LINK && a->inode != b->inode) {
            crash_words_path(b->path, out);
            buf_puts(out, " still leads where it did");
            return true;
        }
    }
    return false;
}

static bool put_names(const struct scene *is, const struct scene *should, struct buf *out) {
    for (size_t i = 0; i < should->n; i++)
        if (!sight_of(is, should->v[i].path)) {
            crash_words_path(should->v[i].path, out);
            buf_puts(out, " is not there");
            return true;
        }
    for (size_t i = 0; i < is->n; i++)
        if (!sight_of(should, is->v[i].path)) {
            crash_words_path(is->v[i].path, out);
            buf_puts(out, " is still there");
            return true;
        }
    return false;
}

static bool put_modes(const struct scene *is, const struct scene *should, struct buf *out) {
    for (size_t i = 0; i < should->n; i++) {
        const struct sight *b = &should->v[i], *a = sight_of(is, b->path);
        if (!a || a->mode == b->mode || b->kind == INODE_LINK)
            continue;
        crash_words_path(b->path, out);
        buf_printf(out, " has mode %03o, not %03o", a->mode, b->mode);
        return true;
    }
    return false;
}

/* Where what a process was doing when it died would have been done. */
static size_t whole_behind(const struct crash_ask *ask, size_t point) {
    for (size_t i = 0; i < ask->wholes_n; i++)
        if (ask->wholes[i] >= point && ask->wholes[i] <= ask->to)
            return ask->wholes[i];
    return ask->to;
}

/* Where those had come to who went on: had nobody died, all would be there. */
static size_t came_to(const struct crash_states *s, const struct crash_way *way) {
    size_t end = s->record->n;
    while (end > way->point && !crash_states_did(s, way, end - 1))
        end--;
    return end;
}

/* What is not as it was at a point; false: all is. */
static bool put_look(struct crash_states *s, const struct crash_way *way, size_t point,
                     struct buf *out) {
    struct crash_search *x = s->search;
    struct scene is, should, before;
    struct crash_way whole = {.point = point};
    struct crash_way first = {.point = x->ask.from};
    look_at(x, way, &is);
    look_at(x, &whole, &should);
    look_at(x, &first, &before);
    bool put = put_contents(x, &is, &should, &before, out) || put_names(&is, &should, out) ||
               put_modes(&is, &should, out);
    scene_fini(&is);
    scene_fini(&should);
    scene_fini(&before);
    return put;
}

/* Of a job that tells no saves these are parted by its pauses, which may be in the middle of one. */
void crash_words_look(struct crash_states *s, const struct crash_way *way, struct buf *out) {
    const struct crash_ask *ask = &s->search->ask;
    bool process = way->death == CRASH_PROCESS;
    size_t point = way->others_go_on ? came_to(s, way)
                   : process         ? whole_behind(ask, way->point)
                                     : way->point;
    if (!put_look(s, way, point, out) && (!process || !put_look(s, way, ask->to, out)))
        buf_puts(out, "all is there");
}
