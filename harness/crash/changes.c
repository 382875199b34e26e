#include "harness/crash/changes.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/crash/barriers.h"

#include <stdlib.h>
#include <string.h>

enum {
    NAME_BYTES_MAX = 255,
    PATH_BYTES_MAX = 4000,
    DEPTH_MAX = 64,
    MODE_KEEP_SIZE = 1,
    MODE_PUNCH = 2,
    MODE_ZERO = 16,
};
static const uint64_t size_max = (uint64_t)1 << 62;

static size_t text_of(struct crash_changes *c, const char *text) {
    uint64_t h = crash_index_hash(0, text, strlen(text));
    size_t at = 0, i;
    while ((i = crash_index_next(&c->by_text, h, &at)) != CRASH_NONE)
        if (str_eq(c->texts[i], text))
            return i;
    mem_push(c->texts, c->texts_n) = text;
    crash_index_put(&c->by_text, h, c->texts_n - 1);
    return c->texts_n - 1;
}

static size_t slot_of(struct crash_changes *c, size_t dir, const char *name, size_t len) {
    uint64_t h = crash_index_hash(dir, name, len);
    size_t at = 0, i;
    while ((i = crash_index_next(&c->by_name, h, &at)) != CRASH_NONE)
        if (c->slots[i].dir == dir && strlen(c->slots[i].name) == len &&
            !memcmp(c->slots[i].name, name, len))
            return i;
    name = arena_strndup(&c->arena, name, len);
    mem_push(c->slots, c->slots_n) = (struct crash_slot){dir, name, CRASH_NONE, text_of(c, name)};
    crash_index_put(&c->by_name, h, c->slots_n - 1);
    return c->slots_n - 1;
}

static bool bad_name(const char *name, size_t len) {
    return !len || len > NAME_BYTES_MAX || (len == 1 && name[0] == '.') ||
           (len == 2 && name[0] == '.' && name[1] == '.');
}

static size_t make_inode(struct crash_changes *c, enum inode_kind kind, uint64_t number,
                         unsigned mode) {
    mem_push(c->inodes, c->inodes_n) = (struct crash_inode){.kind = kind,
                                                            .mode = mode & 0777,
                                                            .number = number,
                                                            .last = CRASH_NONE,
                                                            .shaped = CRASH_NONE};
    if (number)
        crash_index_put(&c->by_number, number, c->inodes_n - 1);
    return c->inodes_n - 1;
}

static size_t by_number(const struct crash_changes *c, uint64_t number) {
    size_t at = 0;
    return number ? crash_index_next(&c->by_number, number, &at) : CRASH_NONE;
}

static void imply(struct crash_changes *c, size_t slot) {
    c->slots[slot].inode = make_inode(c, INODE_DIRECTORY, 0, 0755);
    mem_push(c->implied, c->implied_n) = (struct crash_implied){slot, c->slots[slot].inode};
}

/* The slot of a path's last part; false: there is no such place. Missing directories are made where
 * `make`. */
static bool find_slot(struct crash_changes *c, const char *path, bool make, size_t *ret) {
    size_t dir = CRASH_ROOT;
    if (!path || !*path || strlen(path) > PATH_BYTES_MAX)
        return false;
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        size_t len = strcspn(path, "/");
        if (bad_name(path, len))
            return false;
        size_t slot = slot_of(c, dir, path, len);
        if (!path[len]) {
            *ret = slot;
            return true;
        }
        if (c->slots[slot].inode == CRASH_NONE && make)
            imply(c, slot);
        dir = c->slots[slot].inode;
        if (dir == CRASH_NONE || c->inodes[dir].kind != INODE_DIRECTORY)
            return false;
        path += len + 1;
    }
    return false;
}

static size_t inode_at(struct crash_changes *c, const char *path) {
    size_t slot;
    if (path && !*path)
        return CRASH_ROOT;
    return find_slot(c, path, false, &slot) ? c->slots[slot].inode : CRASH_NONE;
}

/* Whom an operation on contents is about: its number says it, its path where there is no number. */
static size_t subject(struct crash_changes *c, const struct disk_operation *o) {
    size_t inode = o->directory ? inode_at(c, o->path) : by_number(c, o->file);
    if (inode == CRASH_NONE)
        inode = o->directory ? by_number(c, o->file) : inode_at(c, o->path);
    bool fits = inode != CRASH_NONE && (c->inodes[inode].kind == INODE_DIRECTORY) == o->directory &&
                c->inodes[inode].kind != INODE_LINK;
    return fits ? inode : CRASH_NONE;
}

static void set(struct crash_changes *c, struct crash_change *g, size_t slot, size_t inode) {
    g->set[g->sets].slot = slot;
    g->set[g->sets++].inode = inode;
    c->slots[slot].inode = inode;
}

/* Something new goes by path. */
static bool make(struct crash_changes *c, const struct disk_operation *o, struct crash_change *g,
                 enum inode_kind kind) {
    size_t slot;
    bool had = o->deed == DISK_HAD;
    if (!find_slot(c, o->path, had, &slot) || (kind == INODE_LINK && (!o->to || !*o->to)))
        return false;
    size_t known = by_number(c, o->file);
    bool second = had && known != CRASH_NONE && kind == INODE_FILE &&
                  c->inodes[known].kind == INODE_FILE && c->slots[slot].inode == CRASH_NONE;
    if (known != CRASH_NONE && !second)
        return false;
    g->kind = had ? CHANGE_HAD : CHANGE_NAMES;
    g->makes = !second;
    g->inode = second ? known : make_inode(c, kind, o->file, o->mode);
    if (kind == INODE_LINK) {
        c->inodes[g->inode].to = o->to;
        c->inodes[g->inode].text = text_of(c, o->to);
    }
    set(c, g, slot, g->inode);
    return true;
}

static bool writable(const struct disk_operation *o) {
    return o->offset < size_max && o->size < size_max && (o->bytes || !o->size);
}

static bool had(struct crash_changes *c, const struct disk_operation *o, struct crash_change *g) {
    if (o->directory && o->path && !*o->path) {
        c->inodes[CRASH_ROOT].number = o->file;
        if (o->file && by_number(c, o->file) == CRASH_NONE)
            crash_index_put(&c->by_number, o->file, CRASH_ROOT);
        return true;
    }
    size_t there = o->directory ? inode_at(c, o->path) : CRASH_NONE;
    if (there != CRASH_NONE && c->inodes[there].kind == INODE_DIRECTORY) {
        c->inodes[there].mode = o->mode & 0777; /* made for what was told before it */
        return true;
    }
    bool link = !o->directory && o->to && *o->to && !o->size;
    if (!writable(o) || !make(c, o, g,
                              o->directory ? INODE_DIRECTORY
                              : link       ? INODE_LINK
                                           : INODE_FILE))
        return false;
    if (g->makes && c->inodes[g->inode].kind == INODE_FILE)
        c->inodes[g->inode].size = g->end = o->size;
    return true;
}

static bool rename_to(struct crash_changes *c, const struct disk_operation *o,
                      struct crash_change *g) {
    size_t from, to;
    if (!find_slot(c, o->path, false, &from) || !find_slot(c, o->to, false, &to) ||
        c->slots[from].inode == CRASH_NONE)
        return false;
    size_t moved = c->slots[from].inode, replaced = c->slots[to].inode;
    g->kind = CHANGE_NAMES;
    g->inode = moved;
    if (moved == replaced) /* two names of one file: nothing is done */
        return true;
    g->replaces = replaced != CRASH_NONE && c->inodes[replaced].kind == INODE_FILE &&
                  c->inodes[moved].kind == INODE_FILE;
    g->apart = c->slots[from].dir != c->slots[to].dir && c->inodes[moved].kind != INODE_DIRECTORY;
    set(c, g, to, moved);
    set(c, g, from, CRASH_NONE);
    return true;
}

static bool exchange(struct crash_changes *c, const struct disk_operation *o,
                     struct crash_change *g) {
    size_t a, b;
    if (!find_slot(c, o->path, false, &a) || !find_slot(c, o->to, false, &b) ||
        c->slots[a].inode == CRASH_NONE || c->slots[b].inode == CRASH_NONE)
        return false;
    size_t first = c->slots[a].inode, second = c->slots[b].inode;
    g->kind = CHANGE_NAMES;
    g->inode = first;
    set(c, g, a, second);
    set(c, g, b, first);
    return true;
}

static bool link_to(struct crash_changes *c, const struct disk_operation *o,
                    struct crash_change *g) {
    size_t slot, inode = inode_at(c, o->path);
    if (inode == CRASH_NONE || c->inodes[inode].kind == INODE_DIRECTORY ||
        !find_slot(c, o->to, false, &slot))
        return false;
    g->kind = CHANGE_NAMES;
    g->inode = inode;
    set(c, g, slot, inode);
    return true;
}

static bool remove_name(struct crash_changes *c, const struct disk_operation *o,
                        struct crash_change *g) {
    size_t slot;
    if (!find_slot(c, o->path, false, &slot) || c->slots[slot].inode == CRASH_NONE)
        return false;
    g->inode = c->slots[slot].inode;
    if ((c->inodes[g->inode].kind == INODE_DIRECTORY) != (o->deed == DISK_RMDIR))
        return false;
    g->kind = CHANGE_NAMES;
    set(c, g, slot, CRASH_NONE);
    return true;
}

/* Chains operations on the contents of one inode. */
static void chain(struct crash_changes *c, size_t i, bool shapes) {
    struct crash_inode *n = &c->inodes[c->v[i].inode];
    if (n->last != CRASH_NONE)
        c->v[n->last].next = i;
    n->last = i;
    if (shapes)
        n->shaped = i;
}

static bool write_bytes(struct crash_changes *c, const struct disk_operation *o, size_t i) {
    struct crash_change *g = &c->v[i];
    size_t inode = subject(c, o);
    if (inode == CRASH_NONE || o->directory || !writable(o))
        return false;
    if (!o->size)
        return true;
    struct crash_inode *n = &c->inodes[inode];
    *g = (struct crash_change){.kind = CHANGE_WRITE,
                               .inode = inode,
                               .at = o->offset,
                               .end = o->offset + o->size,
                               .size_was = n->size,
                               .next = CRASH_NONE};
    chain(c, i, g->end > n->size);
    n->size = g->end > n->size ? g->end : n->size;
    return true;
}

static bool shape(struct crash_changes *c, const struct disk_operation *o, size_t i) {
    struct crash_change *g = &c->v[i];
    size_t inode = subject(c, o);
    bool cut = o->deed == DISK_TRUNCATE;
    if (inode == CRASH_NONE || o->directory || o->offset >= size_max || o->size >= size_max ||
        (!cut && o->mode & ~(unsigned)(MODE_KEEP_SIZE | MODE_PUNCH | MODE_ZERO)))
        return false;
    struct crash_inode *n = &c->inodes[inode];
    bool grows = !(o->mode & (MODE_KEEP_SIZE | MODE_PUNCH)) && o->offset + o->size > n->size;
    *g = (struct crash_change){.kind = CHANGE_SHAPE,
                               .inode = inode,
                               .end = cut     ? o->offset
                                      : grows ? o->offset + o->size
                                              : n->size,
                               .size_was = n->size,
                               .next = CRASH_NONE};
    chain(c, i, true);
    n->size = g->end;
    return true;
}

static bool mode_of(struct crash_changes *c, const struct disk_operation *o,
                    struct crash_change *g) {
    g->inode = subject(c, o);
    if (g->inode == CRASH_NONE || g->inode == CRASH_ROOT || c->inodes[g->inode].kind == INODE_LINK)
        return g->inode == CRASH_ROOT;
    g->kind = CHANGE_MODE;
    g->mode = o->mode & 0777;
    return true;
}

static bool sync_of(struct crash_changes *c, const struct disk_operation *o,
                    struct crash_change *g) {
    g->kind = o->deed == DISK_CLOSE ? CHANGE_CLOSE : CHANGE_SYNC;
    g->inode = o->deed == DISK_SYNC_ALL ? CRASH_NONE : subject(c, o);
    return g->inode != CRASH_NONE || o->deed == DISK_SYNC_ALL;
}

static bool resolve(struct crash_changes *c, size_t i) {
    const struct disk_operation *o = &c->record->v[i];
    struct crash_change *g = &c->v[i];
    switch (o->deed) {
    case DISK_HAD:
        return i == c->had && ++c->had && had(c, o, g);
    case DISK_CREATE:
        return make(c, o, g, INODE_FILE);
    case DISK_MKDIR:
        return make(c, o, g, INODE_DIRECTORY);
    case DISK_SYMLINK:
        return make(c, o, g, INODE_LINK);
    case DISK_LINK:
        return link_to(c, o, g);
    case DISK_RENAME:
        return rename_to(c, o, g);
    case DISK_EXCHANGE:
        return exchange(c, o, g);
    case DISK_UNLINK:
    case DISK_RMDIR:
        return remove_name(c, o, g);
    case DISK_WRITE:
        return write_bytes(c, o, i);
    case DISK_TRUNCATE:
    case DISK_ALLOCATE:
        return shape(c, o, i);
    case DISK_MODE:
        return mode_of(c, o, g);
    case DISK_SYNC:
    case DISK_SYNC_DATA:
    case DISK_SYNC_ALL:
    case DISK_CLOSE:
        return sync_of(c, o, g);
    case DISK_SYNC_RANGE:
    case DISK_OPEN:
    case DISK_MARK:
        return true;
    case DISK_DEEDS_N:
        break;
    }
    return false;
}

static size_t who_of(struct crash_changes *c, const struct disk_operation *o) {
    for (size_t i = 0; i < c->who_n; i++)
        if (o->rank >= 0 ? c->who[i].rank == o->rank
                         : c->who[i].rank < 0 && c->who[i].pid == o->pid)
            return i;
    mem_push(c->who, c->who_n) = (struct crash_who){o->rank < 0 ? -1 : o->rank, o->pid};
    return c->who_n - 1;
}

static size_t node_named(struct crash_changes *c, const char *node) {
    for (size_t i = 0; i < c->nodes_n; i++)
        if (str_eq(c->nodes[i], node))
            return i;
    mem_push(c->nodes, c->nodes_n) = node;
    return c->nodes_n - 1;
}

static size_t disk_named(struct crash_changes *c, const char *name, size_t len) {
    for (size_t i = 1; i < c->disks_n; i++)
        if (strlen(c->disks[i]) == len && !memcmp(c->disks[i], name, len))
            return i;
    mem_push(c->disks, c->disks_n) = arena_strndup(&c->arena, name, len);
    return c->disks_n - 1;
}

/* Which disk it is about, and whose that is. */
static void place(struct crash_changes *c, size_t i) {
    const struct disk_operation *o = &c->record->v[i];
    struct crash_change *g = &c->v[i];
    size_t len = o->path ? strcspn(o->path, "/") : 0;
    bool shared = len == strlen(CRASH_SHARED) && !strncmp(o->path, CRASH_SHARED, len);
    g->node = node_named(c, o->node ? o->node : "");
    if (!c->volumes || shared || !len || o->deed == DISK_MARK)
        return;
    g->disk = disk_named(c, o->path, len);
    g->node = node_named(c, c->disks[g->disk]);
    c->own_disks_used |= g->kind == CHANGE_NAMES || g->kind == CHANGE_WRITE ||
                         g->kind == CHANGE_SHAPE || g->kind == CHANGE_MODE;
}

static void ignore(struct crash_changes *c, size_t i) {
    const struct disk_operation *o = &c->record->v[i];
    bool known = (unsigned)o->deed < DISK_DEEDS_N;
    if (!c->ignored++)
        c->ignored_first = arena_printf(
            &c->arena, "operation %zu of the record (%s of \"%s\") makes no sense there", i,
            known ? disk_deed_names[o->deed] : "no deed", o->path ? o->path : "");
}

static int by_dir_and_name(const void *a, const void *b, void *slots) {
    const struct crash_slot *all = slots;
    const struct crash_slot *s = &all[*(const size_t *)a], *t = &all[*(const size_t *)b];
    if (s->dir != t->dir)
        return s->dir < t->dir ? -1 : 1;
    return strcmp(s->name, t->name);
}

static void sort(struct crash_changes *c) {
    c->sorted = arena_array(&c->arena, size_t, c->slots_n + 1);
    c->first = arena_array(&c->arena, size_t, c->inodes_n + 1);
    for (size_t i = 0; i < c->slots_n; i++)
        c->sorted[i] = i;
    if (c->slots_n)
        qsort_r(c->sorted, c->slots_n, sizeof(*c->sorted), by_dir_and_name, c->slots);
    for (size_t i = 0, inode = 0; inode <= c->inodes_n; inode++) {
        while (i < c->slots_n && c->slots[c->sorted[i]].dir < inode)
            i++;
        c->first[inode] = i;
    }
}

/* A rank's word is told without its node. */
static void place_words(struct crash_changes *c) {
    const struct disk_operation *v = c->record->v;
    size_t *node = mem_array(size_t, c->who_n + 1);
    for (size_t w = 0; w < c->who_n; w++)
        node[w] = CRASH_NONE;
    for (size_t i = c->had; i < c->record->n; i++)
        if (c->nodes_n && *c->nodes[c->v[i].node])
            node[c->v[i].who] = c->v[i].node;
    for (size_t i = c->had; i < c->record->n; i++)
        if (v[i].deed == DISK_MARK && node[c->v[i].who] != CRASH_NONE)
            c->v[i].node = node[c->v[i].who];
    free(node);
}

void crash_changes_find(struct crash_changes *c, const struct disk_record *record, bool volumes) {
    *c = (struct crash_changes){.record = record, .volumes = volumes};
    (void)(mem_push(c->disks, c->disks_n) = "");
    c->v = arena_array(&c->arena, struct crash_change, record->n + 1);
    make_inode(c, INODE_DIRECTORY, 0, 0755);
    for (size_t i = 0; i < record->n; i++) {
        c->v[i] = (struct crash_change){.inode = CRASH_NONE, .next = CRASH_NONE};
        if (!resolve(c, i)) {
            c->v[i] = (struct crash_change){.inode = CRASH_NONE, .next = CRASH_NONE};
            ignore(c, i);
        }
        bool told = record->v[i].deed != DISK_HAD;
        c->v[i].who = told ? who_of(c, &record->v[i]) : 0;
        if (told)
            place(c, i);
    }
    place_words(c);
    sort(c);
}

bool crash_changes_nothing(const struct disk_operation *o) {
    return o->deed == DISK_OPEN || o->deed == DISK_SYNC_RANGE || barriers_is(o);
}

void crash_changes_fini(struct crash_changes *c) {
    free(c->inodes);
    free(c->slots);
    free(c->implied);
    free(c->texts);
    free(c->who);
    free(c->nodes);
    free(c->disks);
    crash_index_fini(&c->by_name);
    crash_index_fini(&c->by_number);
    crash_index_fini(&c->by_text);
    arena_fini(&c->arena);
    *c = (struct crash_changes){0};
}
