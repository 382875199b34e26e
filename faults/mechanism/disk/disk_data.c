/* What is done to the bytes of files, and what makes them stay. */
#include "faults/mechanism/disk/disk_server.h"

#include "base/sys/file.h"
#include "faults/mechanism/disk/disk_late.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

void disk_open_file(struct disk_call *c) {
    const struct fuse_open_in *in = c->arg;
    struct disk_file *f = disk_file_of(c, c->in->nodeid);
    struct fuse_open_out out = {0};
    if (f && disk_late_open(c, f)) {
        disk_answer_error(c, -ESTALE); /* the kernel looks for the name again */
        return;
    }
    int flags = (int)(in->flags & ~(unsigned)(O_CREAT | O_EXCL | O_NOCTTY | O_APPEND | O_TRUNC |
                                              O_NOFOLLOW | O_DIRECT));
    int fd = f && f->fd >= 0 ? open(disk_way_of(f).path, flags | O_CLOEXEC) : -1;
    if (fd < 0) {
        disk_answer_error(c, f ? -errno : -ESTALE);
        return;
    }
    disk_loss_seen(&c->disk->loss, c->mount->slot, f);
    if (flags & O_ACCMODE)
        disk_note(c, (struct disk_operation){.deed = DISK_OPEN}, f);
    out.fh = (uint64_t)fd;
    out.open_flags = disk_open_flags(c->disk, flags);
    disk_hold_fd(c->mount, fd);
    if (disk_answer(c, &out, sizeof(out)) == -ENOENT)
        disk_drop_fd(c->mount, fd);
}

void disk_flush(struct disk_call *c) {
    const struct fuse_flush_in *in = c->arg;
    struct disk_file *f = disk_file_of(c, c->in->nodeid);
    int flags = fcntl((int)in->fh, F_GETFL);
    if (f && flags >= 0 && flags & O_ACCMODE)
        disk_note(c, (struct disk_operation){.deed = DISK_CLOSE}, f);
    disk_answer_error(c, 0);
}

void disk_release(struct disk_call *c) {
    const struct fuse_release_in *in = c->arg;
    disk_late_close(c->mount, (int)in->fh);
    disk_drop_fd(c->mount, (int)in->fh);
    disk_answer_error(c, 0);
}

void disk_read(struct disk_call *c) {
    const struct fuse_read_in *in = c->arg;
    size_t size = in->size < DISK_WRITE_MAX ? in->size : DISK_WRITE_MAX;
    ssize_t n = pread((int)in->fh, c->reply, size, (off_t)in->offset);
    if (n < 0)
        disk_answer_error(c, -errno);
    else
        disk_answer(c, c->reply, (size_t)n);
}

static int size_of(int fd, uint64_t *ret) {
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    *ret = (uint64_t)st.st_size;
    return 0;
}

static void lose_privileges(struct disk_file *f) {
    struct stat st;
    if (fstat(f->fd, &st) == 0 && st.st_mode & (S_ISUID | S_ISGID))
        chmod(disk_way_of(f).path, st.st_mode & 01777);
}

void disk_write(struct disk_call *c) {
    const struct fuse_write_in *in = c->arg;
    struct disk_file *f = disk_file_of(c, c->in->nodeid);
    const char *bytes = (const char *)(in + 1);
    uint64_t offset = in->offset;
    size_t size = c->cut ? c->cut : in->size;
    int r = !f || c->arg_len - sizeof(*in) < in->size ? -EIO : 0;
    if (r == 0 && in->flags & O_APPEND && !(in->write_flags & FUSE_WRITE_CACHE))
        r = size_of((int)in->fh, &offset);
    if (r == 0)
        r = disk_loss_change(&c->disk->loss, c->mount->slot, f, offset, size);
    ssize_t n = r ? r : pwrite((int)in->fh, bytes, size, (off_t)offset);
    if (n < 0) {
        c->cut = 0;
        disk_answer_error(c, r ? r : -errno);
        return;
    }
    f->changes++;
    disk_late_own(c, f->number);
    if (in->write_flags & FUSE_WRITE_KILL_SUIDGID)
        lose_privileges(f);
    /* Who writes goes on meanwhile; whatever comes next waits for the lock, and so comes behind. */
    struct fuse_write_out out = {.size = (uint32_t)n};
    disk_answer(c, &out, sizeof(out));
    disk_note(c,
              (struct disk_operation){.deed = DISK_WRITE,
                                      .offset = offset,
                                      .size = (uint64_t)n,
                                      .bytes = (const unsigned char *)bytes},
              f);
}

void disk_fallocate(struct disk_call *c) {
    const struct fuse_fallocate_in *in = c->arg;
    struct disk_file *f = disk_file_of(c, c->in->nodeid);
    int r =
        f ? disk_loss_change(&c->disk->loss, c->mount->slot, f, in->offset, UINT64_MAX - in->offset)
          : -ESTALE;
    if (r == 0 && fallocate((int)in->fh, (int)in->mode, (off_t)in->offset, (off_t)in->length) != 0)
        r = -errno;
    if (r == 0) {
        f->changes++;
        disk_late_own(c, f->number);
        disk_note(
            c,
            (struct disk_operation){
                .deed = DISK_ALLOCATE, .offset = in->offset, .size = in->length, .mode = in->mode},
            f);
    }
    disk_answer_error(c, r);
}

void disk_lseek(struct disk_call *c) {
    const struct fuse_lseek_in *in = c->arg;
    off_t at = lseek((int)in->fh, (off_t)in->offset, (int)in->whence);
    struct fuse_lseek_out out = {.offset = (uint64_t)at};
    if (at < 0)
        disk_answer_error(c, -errno);
    else
        disk_answer(c, &out, sizeof(out));
}

/* ---- syncing ---- */

enum { SYNCS_UNLOCKED = 3 };

/* What is synced is what there was when it began. So that one place in the order of effects says
 * which that is, it is done again when something has come in between; at last nothing can. */
void disk_fsync(struct disk_call *c) {
    const struct fuse_fsync_in *in = c->arg;
    bool data = in->fsync_flags & FUSE_FSYNC_FDATASYNC;
    uint64_t before = 0;
    int r = -ESTALE;
    pthread_mutex_lock(&c->disk->lock);
    struct disk_file *f = disk_file_of(c, c->in->nodeid);
    FILE_CLOSE int own = disk_folder_fd(c);
    int fd = own < 0 ? (int)in->fh : own;
    for (int i = 0; f; i++) {
        before = f->changes;
        if (i < SYNCS_UNLOCKED)
            pthread_mutex_unlock(&c->disk->lock);
        r = (data ? fdatasync(fd) : fsync(fd)) == 0 ? 0 : -errno;
        if (i < SYNCS_UNLOCKED)
            pthread_mutex_lock(&c->disk->lock);
        f = disk_file_of(c, c->in->nodeid); /* it may have gone with its mount */
        if (r || !f || f->changes == before)
            break;
    }
    if (r == 0 && f && !c->mount->dead) {
        disk_note(c, (struct disk_operation){.deed = data ? DISK_SYNC_DATA : DISK_SYNC}, f);
        disk_loss_synced(&c->disk->loss, f);
    }
    pthread_mutex_unlock(&c->disk->lock);
    disk_answer_error(c, r);
}

void disk_syncfs(struct disk_call *c) {
    pthread_mutex_lock(&c->disk->lock);
    int r = syncfs(c->disk->backing) == 0 ? 0 : -errno;
    if (r == 0 && !c->mount->dead) {
        disk_note_entry(c, (struct disk_operation){.deed = DISK_SYNC_ALL}, DISK_ROOT, "");
        disk_loss_synced(&c->disk->loss, NULL);
    }
    pthread_mutex_unlock(&c->disk->lock);
    disk_answer_error(c, r);
}

/* ---- the rest ---- */

void disk_statfs(struct disk_call *c) {
    struct statvfs st;
    if (fstatvfs(c->disk->backing, &st) != 0) {
        disk_answer_error(c, -errno);
        return;
    }
    int64_t room = disk_rules_room(c->mount->rules, c->mount->rules_n);
    uint64_t free = room < 0 ? UINT64_MAX : (uint64_t)room / st.f_frsize;
    struct fuse_statfs_out out = {.st = {.blocks = st.f_blocks,
                                         .bfree = free < st.f_bfree ? free : st.f_bfree,
                                         .bavail = free < st.f_bavail ? free : st.f_bavail,
                                         .files = st.f_files,
                                         .ffree = st.f_ffree,
                                         .bsize = (uint32_t)st.f_bsize,
                                         .namelen = (uint32_t)st.f_namemax,
                                         .frsize = (uint32_t)st.f_frsize}};
    disk_answer(c, &out, sizeof(out));
}

/* Those of a link itself cannot be reached this way. */
static int way_to_xattrs(struct disk_call *c, struct disk_way *ret) {
    struct disk_file *f = disk_file_of(c, c->in->nodeid);
    struct stat st;
    if (!f || f->fd < 0 || fstat(f->fd, &st) != 0)
        return -ESTALE;
    *ret = disk_way_of(f);
    return S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) ? 0 : -EOPNOTSUPP;
}

/* The value of one, or without a name the names of all. */
static void tell_xattr(struct disk_call *c, const char *name) {
    const struct fuse_getxattr_in *in = c->arg;
    struct fuse_getxattr_out out = {0};
    struct disk_way way;
    int r = in->size > DISK_WRITE_MAX ? -E2BIG : way_to_xattrs(c, &way);
    if (r) {
        disk_answer_error(c, r);
        return;
    }
    ssize_t n = name ? getxattr(way.path, name, c->reply, in->size)
                     : listxattr(way.path, c->reply, in->size);
    out.size = (uint32_t)n;
    if (n < 0)
        disk_answer_error(c, -errno);
    else if (in->size == 0)
        disk_answer(c, &out, sizeof(out));
    else
        disk_answer(c, c->reply, (size_t)n);
}

void disk_getxattr(struct disk_call *c) {
    tell_xattr(c, c->name);
}

void disk_listxattr(struct disk_call *c) {
    tell_xattr(c, NULL);
}

void disk_setxattr(struct disk_call *c) {
    const struct fuse_setxattr_in *in = c->arg;
    struct disk_way way;
    int r = way_to_xattrs(c, &way);
    if (r == 0 &&
        setxattr(way.path, c->name, c->name + strlen(c->name) + 1, in->size, (int)in->flags) != 0)
        r = -errno;
    disk_answer_error(c, r);
}

void disk_removexattr(struct disk_call *c) {
    struct disk_way way;
    int r = way_to_xattrs(c, &way);
    if (r == 0 && removexattr(way.path, c->name) != 0)
        r = -errno;
    disk_answer_error(c, r);
}
