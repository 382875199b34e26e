#include "faults/mechanism/disk/disk_tree.h"

#include "base/mem.h"
#include "base/sys/file.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS_FIRST = 1024, DEPTH_MAX = 4096 };

static size_t slot_of(const struct disk_tree *t, dev_t dev, ino_t ino) {
    uint64_t h = ((uint64_t)ino ^ ((uint64_t)dev << 32)) * 0x9e3779b97f4a7c15ULL;
    return (h >> 32) & (t->slots - 1);
}

struct disk_file *disk_tree_find(const struct disk_tree *t, uint64_t number) {
    return number < t->numbers ? t->by_number[number] : NULL;
}

struct disk_file *disk_tree_at(const struct disk_tree *t, const struct stat *st) {
    struct disk_file *f = t->slots ? t->by_inode[slot_of(t, st->st_dev, st->st_ino)] : NULL;
    while (f && (f->ino != st->st_ino || f->dev != st->st_dev))
        f = f->next;
    return f;
}

static void hash_in(struct disk_tree *t, struct disk_file *f) {
    struct disk_file **at = &t->by_inode[slot_of(t, f->dev, f->ino)];
    f->next = *at;
    *at = f;
}

static void hash_out(struct disk_tree *t, struct disk_file *f) {
    struct disk_file **at = &t->by_inode[slot_of(t, f->dev, f->ino)];
    while (*at && *at != f)
        at = &(*at)->next;
    if (*at)
        *at = f->next;
    f->next = NULL;
}

static void grow(struct disk_tree *t) {
    free(t->by_inode);
    t->slots = t->slots ? 2 * t->slots : SLOTS_FIRST;
    t->by_inode = mem_array(struct disk_file *, t->slots);
    for (size_t i = 0; i < t->numbers; i++)
        if (t->by_number[i])
            hash_in(t, t->by_number[i]);
}

struct disk_file *disk_tree_add(struct disk_tree *t, const struct stat *st) {
    struct disk_file *old = disk_tree_at(t, st), *f = mem_new(struct disk_file);
    if (old)
        hash_out(t, old);
    if (t->n >= t->slots)
        grow(t);
    while (t->numbers < DISK_ROOT)
        mem_push(t->by_number, t->numbers) = NULL;
    f->number = t->numbers;
    f->dev = st->st_dev;
    f->ino = st->st_ino;
    f->directory = S_ISDIR(st->st_mode);
    f->fd = -1;
    mem_push(t->by_number, t->numbers) = f;
    hash_in(t, f);
    t->n++;
    return f;
}

static void file_free(struct disk_file *f) {
    for (size_t i = 0; f->names && i < (f->names_n ? f->names_n : 1); i++)
        free(f->names[i].name);
    free(f->names);
    file_close(&f->fd);
    free(f);
}

/* The last name stays, for the record, after it has gone: names_n tells. */
void disk_tree_tidy(struct disk_tree *t, struct disk_file *f) {
    if (f->number == DISK_ROOT || f->lookups_all)
        return;
    file_close(&f->fd);
    if (f->names_n || f->held || f->dirt)
        return;
    hash_out(t, f);
    t->by_number[f->number] = NULL;
    t->n--;
    file_free(f);
}

void disk_tree_reset(struct disk_tree *t) {
    for (size_t i = DISK_ROOT + 1; i < t->numbers; i++) {
        struct disk_file *f = t->by_number[i];
        if (!f)
            continue;
        hash_out(t, f);
        t->by_number[i] = NULL;
        t->n--;
        file_free(f);
    }
}

void disk_tree_fini(struct disk_tree *t) {
    for (size_t i = 0; i < t->numbers; i++)
        if (t->by_number[i])
            file_free(t->by_number[i]);
    free(t->by_number);
    free(t->by_inode);
    *t = (struct disk_tree){0};
}

static size_t name_at(const struct disk_file *f, uint64_t parent, const char *name) {
    size_t i = 0;
    while (i < f->names_n && (f->names[i].parent != parent || strcmp(f->names[i].name, name) != 0))
        i++;
    return i;
}

void disk_file_add_name(struct disk_file *f, uint64_t parent, const char *name) {
    if (name_at(f, parent, name) < f->names_n)
        return;
    if (f->names && f->names_n == 0) /* the one that is left of before */
        free(f->names[0].name);
    if (f->directory && f->names_n) { /* has one alone: somebody else has moved it */
        free(f->names[0].name);
        f->names_n = 0;
    }
    char *copy = mem_strdup(name);
    mem_push(f->names, f->names_n) = (struct disk_name){parent, copy};
}

void disk_file_drop_name(struct disk_file *f, uint64_t parent, const char *name) {
    size_t i = name_at(f, parent, name);
    if (i == f->names_n)
        return;
    f->names_n--;
    if (f->names_n == 0)
        return;
    free(f->names[i].name);
    f->names[i] = f->names[f->names_n];
}

static void put_path(const struct disk_tree *t, const struct disk_name *n, int depth,
                     struct buf *buf) {
    const struct disk_file *parent = disk_tree_find(t, n->parent);
    if (n->parent != DISK_ROOT && parent && parent->names && depth < DEPTH_MAX) {
        put_path(t, &parent->names[0], depth + 1, buf);
        buf_putc(buf, '/');
    }
    buf_puts(buf, n->name);
}

const char *disk_tree_entry(const struct disk_tree *t, uint64_t parent, const char *name,
                            struct buf *buf) {
    buf_clear(buf);
    put_path(t, &(struct disk_name){parent, (char *)(uintptr_t)name}, 0, buf);
    return buf_str(buf);
}

const char *disk_tree_path(const struct disk_tree *t, const struct disk_file *f, struct buf *buf) {
    buf_clear(buf);
    if (f->number != DISK_ROOT && f->names)
        put_path(t, &f->names[0], 0, buf);
    return buf_str(buf);
}
