/* record_maker: a record of a disk, operation by operation. */
#pragma once

#include "base/arena.h"
#include "faults/mechanism/disk_record.h"
#include "harness/crash/states.h"

#include <string.h>

enum { MADE_MAX = 4096 };

struct made {
    struct disk_operation v[MADE_MAX];
    struct disk_record record;
    struct arena arena;
    uint64_t file; /* the last that was made */
    int rank;
    const char *node;
};

static inline struct disk_operation *made_add(struct made *m, struct disk_operation o) {
    struct disk_operation *p = &m->v[m->record.n++];
    *p = o;
    p->rank = m->rank;
    p->pid = 100 + m->rank;
    p->node = m->node ? m->node : "";
    p->mode = p->mode ? p->mode : o.deed == DISK_MKDIR || o.directory ? 0755 : 0644;
    m->record.v = m->v;
    return p;
}

static inline const unsigned char *made_bytes(struct made *m, char with, size_t n) {
    unsigned char *b = arena_alloc(&m->arena, n + 1);
    for (size_t i = 0; i < n; i++)
        b[i] = (unsigned char)(with + (char)(i / 512 % 7));
    return b;
}

/* A file or a directory that was there. Returns its number. */
static inline uint64_t made_had(struct made *m, const char *path, char with, size_t n) {
    made_add(m, (struct disk_operation){.deed = DISK_HAD,
                                        .file = ++m->file,
                                        .path = path,
                                        .size = n,
                                        .bytes = made_bytes(m, with, n)});
    return m->file;
}

static inline uint64_t made_had_directory(struct made *m, const char *path) {
    made_add(m, (struct disk_operation){
                    .deed = DISK_HAD, .directory = true, .file = ++m->file, .path = path});
    return m->file;
}

static inline uint64_t made_create(struct made *m, const char *path) {
    made_add(m, (struct disk_operation){.deed = DISK_CREATE, .file = ++m->file, .path = path});
    return m->file;
}

static inline uint64_t made_mkdir(struct made *m, const char *path) {
    made_add(m, (struct disk_operation){.deed = DISK_MKDIR, .file = ++m->file, .path = path});
    return m->file;
}

static inline void made_write(struct made *m, uint64_t file, const char *path, uint64_t at,
                              size_t n, char with) {
    made_add(m, (struct disk_operation){.deed = DISK_WRITE,
                                        .file = file,
                                        .path = path,
                                        .offset = at,
                                        .size = n,
                                        .bytes = made_bytes(m, with, n)});
}

static inline void made_on(struct made *m, enum disk_deed deed, uint64_t file, const char *path) {
    made_add(m, (struct disk_operation){.deed = deed, .file = file, .path = path});
}

static inline void made_truncate(struct made *m, uint64_t file, const char *path, uint64_t size) {
    made_add(m, (struct disk_operation){
                    .deed = DISK_TRUNCATE, .file = file, .path = path, .offset = size});
}

static inline void made_sync_directory(struct made *m, const char *path) {
    made_add(m, (struct disk_operation){.deed = DISK_SYNC, .directory = true, .path = path});
}

static inline void made_names(struct made *m, enum disk_deed deed, const char *path,
                              const char *to) {
    made_add(m, (struct disk_operation){.deed = deed, .path = path, .to = to});
}

static inline void made_mark(struct made *m, const char *what) {
    made_add(m, (struct disk_operation){.deed = DISK_MARK, .path = what});
}

static inline void made_drop(struct made *m) {
    arena_fini(&m->arena);
}

/* ---- looking into a state ---- */

struct looked {
    const char *path;
    bool there;
    struct crash_entry entry; /* its runs are the record's */
    uint64_t size, told;      /* told: bytes that are no hole */
    unsigned char first, last;
};

static inline int looked_see(void *arg, const struct crash_entry *e) {
    struct looked *l = arg;
    if (strcmp(e->path, l->path) != 0)
        return 0;
    l->there = true;
    l->size = e->size;
    for (size_t i = 0; i < e->runs_n; i++)
        l->told += e->runs[i].size;
    if (e->runs_n) {
        const struct crash_run *r = &e->runs[e->runs_n - 1];
        l->first = e->runs[0].bytes[0];
        l->last = r->bytes[r->size - 1];
    }
    return 0;
}

static inline struct looked look(struct crash_states *s, size_t state, const char *path) {
    struct looked l = {.path = path};
    crash_states_walk(s, state, looked_see, &l);
    return l;
}
