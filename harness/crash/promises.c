#include "harness/crash/promises.h"

#include "base/str.h"

#include <string.h>

/* What is known while the record is gone through. */
struct walk {
    struct crash_promises *p;
    const struct crash_changes *c;
    size_t *last; /* by inode: operation that changed it last, anything of it; CRASH_NONE */
    size_t *grew; /* the same, but what fdatasync does not care about: names, times and modes */
    bool *cut;    /* by inode: was cut to nothing since it was last closed */
};

bool crash_promises_changes_names(const struct crash_change *g) {
    return (g->kind == CHANGE_NAMES && g->sets) || g->kind == CHANGE_SHAPE ||
           g->kind == CHANGE_MODE;
}

const struct disk_model *crash_promises_model(const struct crash_promises *p,
                                              const struct crash_change *g) {
    return p->shared && !g->disk ? p->shared : p->model;
}

static const struct disk_model *model_at(const struct walk *w, size_t at) {
    return crash_promises_model(w->p, &w->c->v[at]);
}

static void promise(size_t *point, size_t at) {
    if (*point > at + 1)
        *point = at + 1;
}

static bool touches(const struct crash_changes *c, const struct crash_change *g, size_t set,
                    size_t dir) {
    return c->slots[g->set[set].slot].dir == dir;
}

/* The bytes of a write, or the shape or the mode of a file. node: of this one alone; CRASH_NONE: of all. */
static void promise_bytes(struct walk *w, size_t inode, size_t node, bool modes, size_t at) {
    for (size_t i = w->c->had; i < at; i++) {
        const struct crash_change *g = &w->c->v[i];
        if ((inode != CRASH_NONE && g->inode != inode) || (node != CRASH_NONE && g->node != node))
            continue;
        if (g->kind == CHANGE_WRITE)
            promise(&w->p->bytes[i], at);
        else if (g->kind == CHANGE_SHAPE || (g->kind == CHANGE_MODE && modes))
            promise(&w->p->all[i], at);
    }
}

/* What the journal of a disk has in front of `end` is there, and what it has waited for. */
static void promise_journal(struct walk *w, size_t disk, size_t end, size_t at) {
    for (size_t i = w->c->had; i < end; i++)
        if (w->c->v[i].disk == disk && crash_promises_changes_names(&w->c->v[i])) {
            promise(&w->p->all[i], at);
            promise(&w->p->removal[i], at);
        }
    for (size_t i = w->c->had; i < at; i++)
        if (w->c->v[i].disk == disk && w->p->flushes[i] < end)
            promise(&w->p->bytes[i], at);
}

/* Without a journal an fsync of a directory is about its names. */
static void promise_directory(struct walk *w, size_t dir, size_t at) {
    for (size_t i = w->c->had; i < at; i++) {
        const struct crash_change *g = &w->c->v[i];
        for (size_t k = 0; g->kind == CHANGE_NAMES && k < g->sets; k++) {
            if (!touches(w->c, g, k, dir))
                continue;
            promise(&w->p->all[i], at); /* a name is not gone before the new one is there */
            if (!g->apart || k == 1)
                promise(&w->p->removal[i], at);
        }
    }
}

/* Of several disks a node syncs its own, and what it has written to what all share. */
static void sync_all(struct walk *w, size_t at) {
    size_t node = w->c->v[at].node;
    if (!w->c->volumes) {
        promise_bytes(w, CRASH_NONE, CRASH_NONE, true, at);
        promise_journal(w, 0, at, at);
        return;
    }
    promise_bytes(w, CRASH_NONE, node, true, at);
    for (size_t disk = 0; disk < w->c->disks_n; disk++)
        if (!disk || str_eq(w->c->disks[disk], w->c->nodes[node]))
            promise_journal(w, disk, at, at);
}

static void sync_one(struct walk *w, size_t at) {
    const struct crash_change *g = &w->c->v[at];
    bool data_only = w->c->record->v[at].deed == DISK_SYNC_DATA;
    if (g->inode == CRASH_NONE) {
        sync_all(w, at);
        return;
    }
    const struct disk_model *model = model_at(w, at);
    promise_bytes(w, g->inode, model->by_node ? g->node : CRASH_NONE, !data_only, at);
    size_t last = (data_only ? w->grew : w->last)[g->inode];
    if (model->journal && last != CRASH_NONE)
        promise_journal(w, g->disk, last + 1, at);
    else if (!model->journal && w->c->inodes[g->inode].kind == INODE_DIRECTORY)
        promise_directory(w, g->inode, at);
}

/* Changes of names from `at` on are not there without the bytes that the file has now. */
static void flush(struct walk *w, size_t inode, size_t at) {
    for (size_t i = w->c->had; i < at; i++)
        if (w->c->v[i].kind == CHANGE_WRITE && w->c->v[i].inode == inode && w->p->flushes[i] > at)
            w->p->flushes[i] = at;
}

static void close_one(struct walk *w, size_t at) {
    const struct crash_change *g = &w->c->v[at];
    const struct disk_model *model = model_at(w, at);
    if (model->close_flushes)
        promise_bytes(w, g->inode, model->by_node ? g->node : CRASH_NONE, true, at);
    if (model->truncate_flushes && w->cut[g->inode])
        flush(w, g->inode, at);
    w->cut[g->inode] = false;
}

static void note(struct walk *w, size_t at) {
    const struct crash_change *g = &w->c->v[at];
    bool names = g->kind == CHANGE_NAMES;
    w->last[g->inode] = at;
    if ((!names && g->kind != CHANGE_MODE) || g->makes)
        w->grew[g->inode] = at;
    for (size_t k = 0; names && k < g->sets; k++) {
        size_t dir = w->c->slots[g->set[k].slot].dir;
        w->last[dir] = w->grew[dir] = at;
    }
}

static void names_or_shape(struct walk *w, size_t at) {
    const struct crash_change *g = &w->c->v[at];
    const struct disk_model *model = model_at(w, at);
    if (model->at_once) {
        promise(&w->p->all[at], at);
        promise(&w->p->removal[at], at);
    }
    if (model->at_once && g->kind == CHANGE_SHAPE) /* it is sent behind the bytes */
        promise_bytes(w, g->inode, g->node, true, at);
    if (model->rename_flushes && g->replaces)
        flush(w, g->inode, at);
    if (g->kind == CHANGE_SHAPE && !g->end && g->size_was)
        w->cut[g->inode] = true;
    note(w, at);
}

static void write_bytes(struct walk *w, size_t at) {
    const struct crash_change *g = &w->c->v[at];
    size_t grew = w->grew[g->inode];
    bool grows = g->end > g->size_was;
    if (model_at(w, at)->journal)
        w->p->needs[at] = grows ? at : grew == CRASH_NONE ? 0 : grew + 1;
    w->last[g->inode] = at;
    if (grows)
        w->grew[g->inode] = at;
}

static void step(struct walk *w, size_t at) {
    switch (w->c->v[at].kind) {
    case CHANGE_NONE:
    case CHANGE_HAD:
        break;
    case CHANGE_NAMES:
        if (!w->c->v[at].sets)
            break;
    /* fallthrough */
    case CHANGE_SHAPE:
    case CHANGE_MODE:
        names_or_shape(w, at);
        break;
    case CHANGE_WRITE:
        write_bytes(w, at);
        break;
    case CHANGE_SYNC:
        sync_one(w, at);
        break;
    case CHANGE_CLOSE:
        close_one(w, at);
        break;
    }
}

static size_t *fill(struct arena *arena, size_t n, size_t with) {
    size_t *v = arena_array(arena, size_t, n + 1);
    for (size_t i = 0; i < n; i++)
        v[i] = with;
    return v;
}

void crash_promises_find(struct crash_promises *p, const struct disk_model *model,
                         const struct disk_model *shared, const struct crash_changes *c,
                         struct arena *arena) {
    ARENA_FINI struct arena mine = {0};
    size_t n = c->record->n;
    struct walk w = {.p = p, .c = c};
    *p = (struct crash_promises){.model = model,
                                 .shared = shared,
                                 .all = fill(arena, n, CRASH_NONE),
                                 .removal = fill(arena, n, CRASH_NONE),
                                 .bytes = fill(arena, n, CRASH_NONE),
                                 .needs = fill(arena, n, 0),
                                 .flushes = fill(arena, n, CRASH_NONE)};
    w.last = fill(&mine, c->inodes_n, CRASH_NONE);
    w.grew = fill(&mine, c->inodes_n, CRASH_NONE);
    w.cut = arena_array(&mine, bool, c->inodes_n + 1);
    for (size_t i = 0; i < n; i++)
        step(&w, i);
}
