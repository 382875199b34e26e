#include "faults/mechanism/disk/disk_loss.h"

#include "base/mem.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 64 << 10, UNDOS_MAX = 4096 };

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

enum undo_kind { UNDO_MADE, UNDO_REMOVED, UNDO_RENAMED, UNDO_EXCHANGED };

/* Paths are those of right after it: it is undone when all that came later has been. */
struct disk_undo {
    enum undo_kind kind;
    char *path, *to;
    struct disk_file *held; /* of which we keep a name, in the folder of the held */
    uint64_t held_name;
    bool directory; /* what was made, or what was taken away: an empty one */
    mode_t mode;
};

/* A file with bytes that were not synced. */
struct disk_dirt {
    struct list link;
    struct disk_file *file;
    int fd;
    size_t slot;
    uint64_t size; /* when it was synced last */
    struct saved {
        uint64_t block, at;
    } * saved;
    size_t saved_n;
    unsigned char *is_saved; /* a bit per block */
};

/* ---- bytes ---- */

/* Also of a file that its owner himself may not open so. */
static int open_to_restore(const struct disk_file *f) {
    char path[40];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 || errno != EACCES || fstat(f->fd, &st) != 0 || chmod(path, 0600) != 0)
        return fd;
    fd = open(path, O_RDWR | O_CLOEXEC);
    chmod(path, st.st_mode & 07777);
    return fd;
}

static int begin_dirt(struct disk_loss *l, size_t slot, struct disk_file *f) {
    struct stat st;
    int fd = open_to_restore(f);
    if (fd < 0 || fstat(fd, &st) != 0)
        return -errno;
    struct disk_dirt *d = f->dirt = mem_new(struct disk_dirt);
    d->file = f;
    d->fd = fd;
    d->slot = slot;
    d->size = (uint64_t)st.st_size;
    d->is_saved = mem_alloc(d->size / BLOCK / 8 + 1, 1);
    list_append(&l->dirty, &d->link);
    return 0;
}

static void end_dirt(struct disk_loss *l, struct disk_file *f) {
    struct disk_dirt *d = f->dirt;
    if (!d)
        return;
    list_remove(&d->link);
    f->dirt = NULL;
    file_close(&d->fd);
    free(d->saved);
    free(d->is_saved);
    free(d);
    disk_tree_tidy(l->tree, f);
    if (list_empty(&l->dirty) && ftruncate(l->scratch, 0) == 0)
        l->scratch_end = 0;
}

static int copy(int from, uint64_t at, int to, uint64_t to_at, size_t size) {
    char bytes[BLOCK];
    ssize_t n = pread(from, bytes, size, (off_t)at);
    if (n < 0)
        return -errno;
    memset(bytes + n, 0, size - (size_t)n);
    return pwrite(to, bytes, size, (off_t)to_at) == (ssize_t)size ? 0 : errno ? -errno : -ENOSPC;
}

static int save(struct disk_loss *l, struct disk_dirt *d, uint64_t block) {
    if (d->is_saved[block / 8] & 1 << block % 8)
        return 0;
    int r = copy(d->fd, block * BLOCK, l->scratch, l->scratch_end, BLOCK);
    if (r)
        return r;
    d->is_saved[block / 8] |= (unsigned char)(1 << block % 8);
    mem_push(d->saved, d->saved_n) = (struct saved){block, l->scratch_end};
    l->scratch_end += BLOCK;
    return 0;
}

int disk_loss_change(struct disk_loss *l, size_t slot, struct disk_file *f, uint64_t offset,
                     uint64_t size) {
    int r = 0;
    if (l->how == DISK_KEEPS)
        return 0;
    disk_loss_seen(l, slot, f);
    if (!f->dirt && (r = begin_dirt(l, slot, f)))
        return r;
    struct disk_dirt *d = f->dirt;
    uint64_t end = size < d->size && offset < d->size - size ? offset + size : d->size;
    for (uint64_t at = offset; r == 0 && at < end; at = (at / BLOCK + 1) * BLOCK)
        r = save(l, d, at / BLOCK);
    return r;
}

static int restore(struct disk_loss *l, struct disk_dirt *d) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < d->saved_n; i++) {
        uint64_t at = d->saved[i].block * BLOCK, left = d->size - at;
        r = copy(l->scratch, d->saved[i].at, d->fd, at, left < BLOCK ? left : BLOCK);
    }
    if (r == 0 && ftruncate(d->fd, (off_t)d->size) != 0)
        r = -errno;
    return r;
}

/* ---- names ---- */

static char *name_held(uint64_t n, char ret[32]) {
    snprintf(ret, 32, "%llu", (unsigned long long)n);
    return ret;
}

/* One more name of the file, which outlives the others. */
static int hold(struct disk_loss *l, struct disk_file *f, uint64_t *ret) {
    char name[32], path[40];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
    if (linkat(AT_FDCWD, path, l->held, name_held(l->held_made + 1, name), AT_SYMLINK_FOLLOW) != 0)
        return -errno;
    *ret = ++l->held_made;
    f->held++;
    return 0;
}

static void let_go(struct disk_loss *l, struct disk_file *f, uint64_t held) {
    char name[32];
    unlinkat(l->held, name_held(held, name), 0);
    f->held--;
    disk_tree_tidy(l->tree, f);
}

static void end_undo(struct disk_loss *l, struct disk_undo *u) {
    if (u->held)
        let_go(l, u->held, u->held_name);
    free(u->path);
    free(u->to);
}

/* The first n of the journal stay. */
static void commit(struct disk_loss *l, size_t n) {
    for (size_t i = 0; i < n; i++)
        end_undo(l, &l->undos[i]);
    l->undos_n -= n;
    if (l->undos_n)
        memmove(l->undos, l->undos + n, l->undos_n * sizeof(*l->undos));
}

static void add_undo(struct disk_loss *l, struct disk_undo u) {
    if (l->undos_n == UNDOS_MAX)
        commit(l, UNDOS_MAX / 2);
    mem_push(l->undos, l->undos_n) = u;
}

static char *entry(const struct disk_loss *l, const struct disk_file *parent, const char *name) {
    BUF_FINI struct buf path = {0};
    return mem_strdup(disk_tree_entry(l->tree, parent->number, name, &path));
}

void disk_loss_made(struct disk_loss *l, const struct disk_file *parent, const char *name,
                    const struct disk_file *f) {
    if (l->how == DISK_LOSES)
        add_undo(l, (struct disk_undo){.kind = UNDO_MADE,
                                       .path = entry(l, parent, name),
                                       .directory = f->directory});
}

static bool hold_what_goes(struct disk_loss *l, struct disk_file *f, struct disk_undo *u,
                           int *ret) {
    struct stat st = {0};
    *ret = 0;
    if (!f)
        return true;
    u->directory = f->directory;
    if (f->directory && fstat(f->fd, &st) == 0)
        u->mode = st.st_mode & 07777;
    else
        *ret = hold(l, f, &u->held_name);
    u->held = f->directory ? NULL : f;
    return *ret == 0;
}

int disk_loss_remove(struct disk_loss *l, const struct disk_file *parent, const char *name,
                     struct disk_file *f) {
    struct disk_undo u = {.kind = UNDO_REMOVED};
    int r = 0;
    if (l->how == DISK_LOSES && !hold_what_goes(l, f, &u, &r))
        return r;
    if (unlinkat(parent->fd, name, f->directory ? AT_REMOVEDIR : 0) != 0)
        r = -errno;
    if (r || l->how != DISK_LOSES) {
        if (u.held)
            let_go(l, u.held, u.held_name);
        return r;
    }
    u.path = entry(l, parent, name);
    add_undo(l, u);
    return 0;
}

int disk_loss_rename(struct disk_loss *l, const struct disk_move *m) {
    bool exchange = m->flags & RENAME_EXCHANGE;
    struct disk_undo u = {.kind = exchange ? UNDO_EXCHANGED : UNDO_RENAMED};
    int r = 0;
    if (l->how == DISK_LOSES && !exchange && !hold_what_goes(l, m->other, &u, &r))
        return r;
    if (renameat2(m->from_parent->fd, m->from, m->to_parent->fd, m->to, m->flags) != 0)
        r = -errno;
    if (r || l->how != DISK_LOSES) {
        if (u.held)
            let_go(l, u.held, u.held_name);
        return r;
    }
    u.path = entry(l, m->from_parent, m->from);
    u.to = entry(l, m->to_parent, m->to);
    add_undo(l, u);
    return 0;
}

static int bring_back(struct disk_loss *l, struct disk_undo *u, const char *path) {
    char name[32];
    if (u->held) {
        if (renameat(l->held, name_held(u->held_name, name), l->backing, path) != 0)
            return -errno;
        u->held->held--;
        u->held = NULL;
    } else if (u->directory && mkdirat(l->backing, path, u->mode) != 0) {
        return -errno;
    }
    return 0;
}

static int undo(struct disk_loss *l, struct disk_undo *u) {
    int r = 0;
    switch (u->kind) {
    case UNDO_MADE:
        r = unlinkat(l->backing, u->path, u->directory ? AT_REMOVEDIR : 0);
        return r ? -errno : 0;
    case UNDO_REMOVED:
        return bring_back(l, u, u->path);
    case UNDO_RENAMED:
        if (renameat(l->backing, u->to, l->backing, u->path) != 0)
            return -errno;
        return bring_back(l, u, u->to);
    case UNDO_EXCHANGED:
        r = renameat2(l->backing, u->path, l->backing, u->to, RENAME_EXCHANGE);
        return r ? -errno : 0;
    }
    return 0;
}

/* ---- all of it ---- */

void disk_loss_synced(struct disk_loss *l, struct disk_file *f) {
    commit(l, l->undos_n);
    if (f)
        end_dirt(l, f);
    while (!f && !list_empty(&l->dirty))
        end_dirt(l, list_entry(l->dirty.next, struct disk_dirt, link)->file);
}

void disk_loss_seen(struct disk_loss *l, size_t slot, struct disk_file *f) {
    if (f->dirt && f->dirt->slot != slot)
        end_dirt(l, f);
}

static void fail(struct err *err, int *ret, int code, const char *what) {
    if (code && *ret == 0)
        *ret = err_set(err, code, "take what a disk was not synced: %s", what);
}

int disk_loss_strike(struct disk_loss *l, size_t slot, struct err *err) {
    int r = 0;
    for (size_t i = l->undos_n; i-- > 0;) {
        fail(err, &r, undo(l, &l->undos[i]), l->undos[i].path);
        end_undo(l, &l->undos[i]);
        l->undos_n = i;
    }
    list_each_safe(it, next, &l->dirty) {
        struct disk_dirt *d = list_entry(it, struct disk_dirt, link);
        if (d->slot != slot)
            continue;
        fail(err, &r, restore(l, d), "bytes");
        end_dirt(l, d->file);
    }
    return r;
}

static int open_scratch(struct disk_loss *l, const char *path, struct err *err) {
    struct stat held, dir;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return err_set(err, -errno, "make %s", path);
    l->held = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l->held < 0 || fstat(l->held, &held) != 0 || fstat(l->backing, &dir) != 0)
        return err_set(err, -errno, "open %s", path);
    if (held.st_dev != dir.st_dev)
        return err_say(err, -EXDEV, "%s is on another file system than the disk that it is for",
                       path);
    l->scratch = openat(l->held, "bytes", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (l->scratch < 0)
        return err_set(err, -errno, "make %s/bytes", path);
    unlinkat(l->held, "bytes", 0);
    return 0;
}

int disk_loss_open(struct disk_loss *l, const struct disk_options *o, struct disk_tree *tree,
                   int backing, struct err *err) {
    *l = (struct disk_loss){
        .how = o->losing, .tree = tree, .backing = backing, .held = -1, .scratch = -1};
    list_init(&l->dirty);
    return o->losing == DISK_KEEPS ? 0 : open_scratch(l, o->held, err);
}

void disk_loss_close(struct disk_loss *l) {
    if (l->how != DISK_KEEPS && l->dirty.next)
        disk_loss_synced(l, NULL);
    free(l->undos);
    l->undos = NULL;
    file_close(&l->held);
    file_close(&l->scratch);
    l->how = DISK_KEEPS;
}
