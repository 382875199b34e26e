/* What is done to names and to what the kernel calls attributes. All of it runs under the lock. */
#include "faults/mechanism/disk/disk_server.h"

#include "base/mem.h"
#include "base/sys/file.h"
#include "faults/mechanism/disk/disk_faults.h"
#include "faults/mechanism/disk/disk_late.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE  2
#endif

/* ---- entries ---- */

/* The file behind an entry, known from here on; *ret_fd: O_PATH. NULL: errno says why. */
static struct disk_file *find(struct disk_call *c, struct disk_file *parent, const char *name) {
    struct stat st;
    FILE_CLOSE int fd = openat(parent->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return NULL;
    struct disk_file *f = disk_tree_at(&c->disk->tree, &st);
    f = f ? f : disk_tree_add(&c->disk->tree, &st);
    disk_file_add_name(f, parent->number, name);
    if (f->fd < 0)
        f->fd = file_keep(&fd);
    return f;
}

/* What was made just now is a new file, though its inode may have been another's. */
static struct disk_file *made(struct disk_call *c, struct disk_file *parent, const char *name) {
    struct stat st;
    FILE_CLOSE int fd = openat(parent->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return NULL;
    struct disk_file *f = disk_tree_add(&c->disk->tree, &st);
    disk_file_add_name(f, parent->number, name);
    f->fd = file_keep(&fd);
    parent->changes++;
    disk_late_own_name(c, parent->number, name);
    /* In a directory that hands on its group it has that already. */
    struct stat of;
    bool inherits = fstat(parent->fd, &of) == 0 && of.st_mode & S_ISGID;
    if (c->disk->root && (st.st_uid != c->in->uid || (!inherits && st.st_gid != c->in->gid)))
        fchownat(f->fd, "", c->in->uid, inherits ? (gid_t)-1 : c->in->gid,
                 AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
    return f;
}

static int attr_for(struct disk_call *c, const struct disk_file *f, struct fuse_attr *ret) {
    int r = disk_attr(f, ret);
    if (r == 0)
        disk_late_attr(c, f, ret);
    return r;
}

static int fill_entry(struct disk_call *c, const struct disk_file *f, struct fuse_entry_out *ret) {
    uint64_t valid_s = disk_valid_s(c->disk);
    *ret =
        (struct fuse_entry_out){.nodeid = f->number, .entry_valid = valid_s, .attr_valid = valid_s};
    return attr_for(c, f, &ret->attr);
}

static void known(struct disk_call *c, struct disk_file *f, int change) {
    f->lookups[c->mount->slot] += (uint32_t)change;
    f->lookups_all += (uint64_t)(int64_t)change;
}

static void answer_entry(struct disk_call *c, struct disk_file *f) {
    struct fuse_entry_out out;
    int r = f ? fill_entry(c, f, &out) : -errno;
    if (r) {
        disk_answer_error(c, r);
        return;
    }
    known(c, f, 1);
    if (disk_answer(c, &out, sizeof(out)) == -ENOENT) {
        known(c, f, -1);
        disk_tree_tidy(&c->disk->tree, f);
    }
}

/* That there is no such name, which the kernel may go on believing. */
static void answer_nothing(struct disk_call *c) {
    struct fuse_entry_out out = {.entry_valid = disk_valid_s(c->disk)};
    disk_answer(c, &out, sizeof(out));
}

/* NULL: answered already. */
static struct disk_file *parent_of(struct disk_call *c) {
    struct disk_file *parent = disk_file_of(c, c->in->nodeid);
    if (!parent || parent->fd < 0)
        disk_answer_error(c, -ESTALE);
    return parent && parent->fd >= 0 ? parent : NULL;
}

void disk_lookup(struct disk_call *c) {
    struct disk_file *parent = parent_of(c);
    if (!parent)
        return;
    struct disk_file *f = find(c, parent, c->name);
    if (f || errno == ENOENT) {
        struct disk_file *told = disk_late_name(c, parent, c->name, f);
        if (f && told != f)
            disk_tree_tidy(&c->disk->tree, f);
        f = told;
        errno = ENOENT;
    }
    if (!f && errno == ENOENT && c->disk->alone)
        answer_nothing(c);
    else
        answer_entry(c, f);
}

/* ---- making ---- */

static void record_made(struct disk_call *c, struct disk_file *parent, struct disk_file *f,
                        struct disk_operation o) {
    o.file = f->number;
    o.mode &= 07777;
    disk_loss_made(&c->disk->loss, parent, c->name, f);
    disk_note_entry(c, o, parent->number, c->name);
}

void disk_mkdir(struct disk_call *c) {
    const struct fuse_mkdir_in *in = c->arg;
    struct disk_file *parent = parent_of(c), *f = NULL;
    if (!parent)
        return;
    if (mkdirat(parent->fd, c->name, in->mode & 07777) == 0)
        f = made(c, parent, c->name);
    if (f)
        record_made(
            c, parent, f,
            (struct disk_operation){.deed = DISK_MKDIR, .directory = true, .mode = in->mode});
    answer_entry(c, f);
}

void disk_symlink(struct disk_call *c) {
    const char *to = c->name + strlen(c->name) + 1;
    struct disk_file *parent = parent_of(c), *f = NULL;
    if (!parent)
        return;
    if (symlinkat(to, parent->fd, c->name) == 0)
        f = made(c, parent, c->name);
    if (f)
        record_made(c, parent, f, (struct disk_operation){.deed = DISK_SYMLINK, .to = to});
    answer_entry(c, f);
}

/* Sockets and pipes are made, and no part of what is recorded. */
void disk_mknod(struct disk_call *c) {
    const struct fuse_mknod_in *in = c->arg;
    struct disk_file *parent = parent_of(c), *f = NULL;
    if (!parent)
        return;
    if (mknodat(parent->fd, c->name, in->mode, in->rdev) == 0)
        f = made(c, parent, c->name);
    if (f && S_ISREG(in->mode))
        record_made(c, parent, f, (struct disk_operation){.deed = DISK_CREATE, .mode = in->mode});
    answer_entry(c, f);
}

void disk_create(struct disk_call *c) {
    const struct fuse_create_in *in = c->arg;
    struct {
        struct fuse_entry_out entry;
        struct fuse_open_out open;
    } out = {.open = {.fh = 0}};
    struct disk_file *parent = parent_of(c), *f;
    if (!parent)
        return;
    int flags = (int)(in->flags & ~(unsigned)(O_CREAT | O_EXCL | O_NOCTTY | O_APPEND | O_TRUNC));
    int fd = openat(parent->fd, c->name, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    in->mode & 07777);
    bool was_there = fd < 0 && errno == EEXIST && !(in->flags & O_EXCL);
    if (was_there) /* another node was faster */
        fd = openat(parent->fd, c->name, flags | O_NOFOLLOW | O_CLOEXEC);
    f = fd < 0 ? NULL : was_there ? find(c, parent, c->name) : made(c, parent, c->name);
    int r = f ? fill_entry(c, f, &out.entry) : -errno;
    if (r) {
        file_close(&fd);
        disk_answer_error(c, r);
        return;
    }
    if (!was_there)
        record_made(c, parent, f, (struct disk_operation){.deed = DISK_CREATE, .mode = in->mode});
    if (flags & O_ACCMODE)
        disk_note(c, (struct disk_operation){.deed = DISK_OPEN}, f);
    out.open.fh = (uint64_t)fd;
    out.open.open_flags = disk_open_flags(c->disk, flags);
    disk_hold_fd(c->mount, fd);
    known(c, f, 1);
    if (disk_answer(c, &out, sizeof(out)) == -ENOENT) {
        known(c, f, -1);
        disk_drop_fd(c->mount, fd);
    }
}

void disk_link(struct disk_call *c) {
    const struct fuse_link_in *in = c->arg;
    struct disk_file *parent = parent_of(c), *f = disk_file_of(c, in->oldnodeid);
    if (!parent)
        return;
    if (!f || f->fd < 0) {
        disk_answer_error(c, -ESTALE);
        return;
    }
    BUF_FINI struct buf to = {0};
    if (linkat(AT_FDCWD, disk_way_of(f).path, parent->fd, c->name, AT_SYMLINK_FOLLOW) != 0) {
        disk_answer_error(c, -errno);
        return;
    }
    disk_tree_entry(&c->disk->tree, parent->number, c->name, &to);
    disk_note(c, (struct disk_operation){.deed = DISK_LINK, .to = buf_str(&to)}, f);
    disk_file_add_name(f, parent->number, c->name);
    parent->changes++;
    disk_late_own_name(c, parent->number, c->name);
    disk_late_own(c, f->number);
    disk_loss_made(&c->disk->loss, parent, c->name, f);
    answer_entry(c, f);
}

/* ---- taking away, and renaming ---- */

static void remove_entry(struct disk_call *c, bool directory) {
    struct disk_file *parent = parent_of(c);
    if (!parent)
        return;
    struct disk_file *f = find(c, parent, c->name);
    if (!f) {
        disk_answer_error(c, -errno);
        return;
    }
    int64_t held = disk_faults_held(c, f);
    int r = disk_loss_remove(&c->disk->loss, parent, c->name, f);
    if (r == 0) {
        disk_faults_freed(
            c, disk_tree_entry(&c->disk->tree, parent->number, c->name, &c->disk->path), held);
        disk_note_entry(c,
                        (struct disk_operation){.deed = directory ? DISK_RMDIR : DISK_UNLINK,
                                                .directory = directory,
                                                .file = f->number},
                        parent->number, c->name);
        disk_file_drop_name(f, parent->number, c->name);
        parent->changes++;
        disk_late_own_name(c, parent->number, c->name);
        disk_late_own(c, f->number);
    }
    disk_tree_tidy(&c->disk->tree, f);
    disk_answer_error(c, r);
}

void disk_unlink(struct disk_call *c) {
    remove_entry(c, false);
}

void disk_rmdir(struct disk_call *c) {
    remove_entry(c, true);
}

struct renaming {
    struct disk_file *from_parent, *to_parent, *file, *other;
    const char *from, *to;
    unsigned flags;
};

static void rename_done(struct disk_call *c, const struct renaming *r) {
    bool exchange = r->flags & RENAME_EXCHANGE;
    disk_tree_entry(&c->disk->tree, r->to_parent->number, r->to, &c->disk->to);
    disk_note_entry(c,
                    (struct disk_operation){.deed = exchange ? DISK_EXCHANGE : DISK_RENAME,
                                            .directory = r->file->directory,
                                            .file = r->file->number,
                                            .to = buf_str(&c->disk->to)},
                    r->from_parent->number, r->from);
    disk_file_drop_name(r->file, r->from_parent->number, r->from);
    if (r->other)
        disk_file_drop_name(r->other, r->to_parent->number, r->to);
    disk_file_add_name(r->file, r->to_parent->number, r->to);
    if (r->other && exchange)
        disk_file_add_name(r->other, r->from_parent->number, r->from);
    r->from_parent->changes++;
    r->to_parent->changes++;
    disk_late_own_name(c, r->from_parent->number, r->from);
    disk_late_own_name(c, r->to_parent->number, r->to);
    disk_late_own(c, r->file->number);
}

static void rename_entry(struct disk_call *c, uint64_t to_parent, const char *from,
                         unsigned flags) {
    struct renaming r = {.from = from, .to = from + strlen(from) + 1, .flags = flags};
    r.from_parent = parent_of(c);
    if (!r.from_parent)
        return;
    r.to_parent = disk_file_of(c, to_parent);
    if (!r.to_parent || r.to_parent->fd < 0) {
        disk_answer_error(c, -ESTALE);
        return;
    }
    r.file = find(c, r.from_parent, r.from);
    if (!r.file) {
        disk_answer_error(c, -errno);
        return;
    }
    r.other = find(c, r.to_parent, r.to);
    if (r.other == r.file) { /* two names of one file: POSIX has nothing happen */
        disk_answer_error(c, flags & RENAME_NOREPLACE ? -EEXIST : 0);
        return;
    }
    int64_t held = disk_faults_held(c, r.other);
    struct disk_move move = {r.from_parent, r.to_parent, r.from, r.to, r.other, flags};
    int code = disk_loss_rename(&c->disk->loss, &move);
    if (code == 0)
        rename_done(c, &r);
    if (code == 0 && !(flags & RENAME_EXCHANGE))
        disk_faults_freed(c, disk_tree_entry(&c->disk->tree, to_parent, r.to, &c->disk->to), held);
    if (r.other)
        disk_tree_tidy(&c->disk->tree, r.other);
    disk_answer_error(c, code);
}

void disk_rename(struct disk_call *c) {
    const struct fuse_rename_in *in = c->arg;
    rename_entry(c, in->newdir, c->name, 0);
}

void disk_rename2(struct disk_call *c) {
    const struct fuse_rename2_in *in = c->arg;
    if (in->flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE))
        disk_answer_error(c, -EINVAL);
    else
        rename_entry(c, in->newdir, c->name, in->flags);
}

/* ---- attributes ---- */

static void answer_attr(struct disk_call *c, const struct disk_file *f) {
    struct fuse_attr_out out = {.attr_valid = disk_valid_s(c->disk)};
    int r = f && f->fd >= 0 ? attr_for(c, f, &out.attr) : -ESTALE;
    if (r)
        disk_answer_error(c, r);
    else
        disk_answer(c, &out, sizeof(out));
}

void disk_getattr(struct disk_call *c) {
    answer_attr(c, disk_file_of(c, c->in->nodeid));
}

static struct timespec time_of(uint32_t valid, uint32_t set, uint32_t now, uint64_t s,
                               uint32_t ns) {
    if (valid & now)
        return (struct timespec){0, UTIME_NOW};
    if (valid & set)
        return (struct timespec){(time_t)s, (long)ns};
    return (struct timespec){0, UTIME_OMIT};
}

static int set_size(struct disk_call *c, struct disk_file *f, const struct fuse_setattr_in *in) {
    struct stat before = {0};
    int r = disk_loss_change(&c->disk->loss, c->mount->slot, f, in->size, UINT64_MAX - in->size);
    if (r)
        return r;
    fstat(f->fd, &before);
    r = in->valid & FATTR_FH ? ftruncate((int)in->fh, (off_t)in->size)
                             : truncate(disk_way_of(f).path, (off_t)in->size);
    if (r != 0)
        return -errno;
    disk_faults_freed(c, disk_tree_path(&c->disk->tree, f, &c->disk->path),
                      before.st_size - (int64_t)in->size);
    f->changes++;
    disk_note(c, (struct disk_operation){.deed = DISK_TRUNCATE, .offset = in->size}, f);
    return 0;
}

static int set_attr(struct disk_call *c, struct disk_file *f, const struct fuse_setattr_in *in) {
    struct disk_way way = disk_way_of(f);
    uint32_t v = in->valid;
    struct stat st;
    if (v & (FATTR_UID | FATTR_GID) &&
        fchownat(f->fd, "", v & FATTR_UID ? in->uid : (uid_t)-1,
                 v & FATTR_GID ? in->gid : (gid_t)-1, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0)
        return -errno;
    if (v & FATTR_MODE && chmod(way.path, in->mode & 07777) != 0)
        return -errno;
    if (v & FATTR_MODE)
        disk_note(c, (struct disk_operation){.deed = DISK_MODE, .mode = in->mode & 07777}, f);
    int r = v & FATTR_SIZE ? set_size(c, f, in) : 0;
    if (r == 0 && v & FATTR_KILL_SUIDGID && fstat(f->fd, &st) == 0 &&
        st.st_mode & (S_ISUID | S_ISGID))
        chmod(way.path, st.st_mode & 01777);
    if (r || !(v & (FATTR_ATIME | FATTR_MTIME)))
        return r;
    struct timespec t[] = {
        time_of(v, FATTR_ATIME, FATTR_ATIME_NOW, in->atime, in->atimensec),
        time_of(v, FATTR_MTIME, FATTR_MTIME_NOW, in->mtime, in->mtimensec),
    };
    return utimensat(f->fd, "", t, AT_EMPTY_PATH) == 0 ? 0 : -errno;
}

void disk_setattr(struct disk_call *c) {
    struct disk_file *f = disk_file_of(c, c->in->nodeid);
    int r = f && f->fd >= 0 ? set_attr(c, f, c->arg) : -ESTALE;
    if (f)
        disk_late_own(c, f->number);
    if (r)
        disk_answer_error(c, r);
    else
        answer_attr(c, f);
}

void disk_readlink(struct disk_call *c) {
    struct disk_file *f = disk_file_of(c, c->in->nodeid);
    if (f)
        disk_late_link(c, f);
    ssize_t n = f ? readlinkat(f->fd, "", c->reply, 4096) : -1;
    if (n < 0)
        disk_answer_error(c, f ? -errno : -ESTALE);
    else
        disk_answer(c, c->reply, (size_t)n);
}

/* ---- directories ---- */

/* Of one mount alone the kernel need not ask again: whoever lists or syncs it says which it is. */
void disk_opendir(struct disk_call *c) {
    struct disk_file *f = disk_file_of(c, c->in->nodeid);
    if (c->disk->alone) {
        disk_answer_error(c, -ENOSYS);
        return;
    }
    struct fuse_open_out out = {0};
    int fd = f && f->fd >= 0 ? openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0) {
        disk_answer_error(c, f ? -errno : -ESTALE);
        return;
    }
    out.fh = (uint64_t)fd;
    disk_hold_fd(c->mount, fd);
    disk_late_list(c, f, fd);
    if (disk_answer(c, &out, sizeof(out)) == -ENOENT) {
        disk_late_close(c->mount, fd);
        disk_drop_fd(c->mount, fd);
    }
}

/* As many as there is room for; each says where the next one begins. */
static size_t put_entries(const char *from, size_t n, char *to, size_t size) {
    size_t used = 0;
    for (size_t at = 0; at < n;) {
        const struct dirent64 *e = (const void *)(from + at);
        size_t len = strlen(e->d_name), whole = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + len);
        if (whole > size - used)
            break;
        struct fuse_dirent *out = (void *)(to + used);
        memset(out, 0, whole);
        out->ino = e->d_ino;
        out->off = (uint64_t)e->d_off;
        out->namelen = (uint32_t)len;
        out->type = e->d_type;
        memcpy(out->name, e->d_name, len);
        used += whole;
        at += e->d_reclen;
    }
    return used;
}

void disk_readdir(struct disk_call *c) {
    const struct fuse_read_in *in = c->arg;
    size_t half = DISK_WRITE_MAX / 2, size = in->size < half ? in->size : half, late_n;
    char *entries = c->reply + half;
    const char *late;
    pthread_mutex_lock(&c->disk->lock);
    size_t used = 0;
    FILE_CLOSE int own = disk_folder_fd(c);
    int fd = c->disk->alone ? own : (int)in->fh;
    bool told = disk_late_entries(c->mount, fd, in->offset, &late, &late_n);
    if (told)
        used = put_entries(late, late_n, c->reply, size);
    pthread_mutex_unlock(&c->disk->lock);
    ssize_t n = told                                         ? 0
                : lseek(fd, (off_t)in->offset, SEEK_SET) < 0 ? -1
                                                             : getdents64(fd, entries, size);
    if (n < 0)
        disk_answer_error(c, -errno);
    else
        disk_answer(c, c->reply, told ? used : put_entries(entries, (size_t)n, c->reply, size));
}
