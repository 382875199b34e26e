/* Calls that change names: made, opened, renamed, linked and removed in the caller's place. */
#include "base/sys/file.h"
#include "harness/crash/call_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Its umask, which is looked up once, and then followed. */
static mode_t read_mask(const struct call_scene *s) {
    char path[64];
    BUF_FINI struct buf status = {0};
    snprintf(path, sizeof(path), "/proc/%d/status", (int)s->c->pid);
    const char *line =
        file_read(path, 1 << 16, &status, NULL) == 0 ? strstr(buf_str(&status), "\nUmask:") : NULL;
    return line ? (mode_t)strtoul(line + strlen("\nUmask:"), NULL, 8) : 022;
}

int64_t call_does_umask(const struct call_scene *s) {
    s->r->mask = (mode_t)s->c->args[0] & 0777;
    s->r->mask_known = true;
    return CALL_GOES_ON;
}

/* The new file's mode is what the caller's umask leaves of it. */
static mode_t masked(const struct call_scene *s, uint64_t mode) {
    struct call_record *r = s->r;
    if (!r->mask_known)
        r->mask = read_mask(s);
    r->mask_known = true;
    return (mode_t)mode & 07777 & ~r->mask;
}

/* As it is now. */
static bool look(const struct call_place *p, struct stat *ret) {
    return fstatat(p->parent, p->name, ret, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- open ---- */

/* What an open has made of a file, and that there is somebody who writes. */
static void tell_open(const struct call_scene *s, const struct call_place *p, int fd, bool writes,
                      bool made, bool emptied) {
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    struct disk_operation o = {.path = p->path, .mode = st.st_mode & 07777};
    o.file = made ? call_scene_new_number(s, &st) : call_scene_number(s, &st);
    if (made || emptied) {
        o.deed = made ? DISK_CREATE : DISK_TRUNCATE;
        call_scene_tell(s, o);
    }
    call_scene_served(s, &st, p->path);
    if (writes) {
        o.deed = DISK_OPEN;
        call_scene_tell(s, o);
    }
}

static int64_t open_file(const struct call_scene *s, int dir, uint64_t at, uint64_t flags,
                         uint64_t mode) {
    CALL_PLACE_CLOSE struct call_place p = CALL_PLACE_NONE;
    if (!(flags & (O_ACCMODE | O_CREAT | O_TRUNC)) || flags & O_PATH ||
        (flags & O_TMPFILE) == O_TMPFILE)
        return CALL_GOES_ON;
    bool follows = !(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
    if (!call_place_find(s, dir, at, follows, &p))
        return CALL_GOES_ON;
    bool there = call_place_look(&p);
    FILE_CLOSE int fd = openat(p.parent, p.name, (int)flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
                               flags & O_CREAT ? masked(s, mode) : 0);
    if (fd < 0)
        return -errno;
    tell_open(s, &p, fd, (flags & O_ACCMODE) != O_RDONLY, !there,
              there && flags & O_TRUNC && p.st.st_size > 0);
    call_watch_give(s->r->watch, s->c->id, fd, flags & O_CLOEXEC);
    return CALL_ANSWERED;
}

int64_t call_does_open(const struct call_scene *s) {
    return open_file(s, AT_FDCWD, s->c->args[0], s->c->args[1], s->c->args[2]);
}

int64_t call_does_open_at(const struct call_scene *s) {
    return open_file(s, (int)s->c->args[0], s->c->args[1], s->c->args[2], s->c->args[3]);
}

int64_t call_does_creat(const struct call_scene *s) {
    return open_file(s, AT_FDCWD, s->c->args[0], O_CREAT | O_WRONLY | O_TRUNC, s->c->args[1]);
}

int64_t call_does_open_how(const struct call_scene *s) {
    struct open_how how = {0};
    size_t size = s->c->args[3] < sizeof(how) ? (size_t)s->c->args[3] : sizeof(how);
    if (!call_scene_read(s, s->c->args[2], &how, size))
        return CALL_GOES_ON;
    return open_file(s, (int)s->c->args[0], s->c->args[1], how.flags, how.mode);
}

/* Most of what a program closes was opened to read, or is a socket. */
int64_t call_does_close(const struct call_scene *s) {
    char path[PATH_MAX];
    struct stat st;
    FILE_CLOSE int fd = call_scene_writer(s, (int)s->c->args[0], path, &st);
    if (fd >= 0 && st.st_nlink > 0)
        call_scene_tell(s, (struct disk_operation){.deed = DISK_CLOSE,
                                                   .path = path,
                                                   .file = call_scene_number(s, &st)});
    return CALL_GOES_ON;
}

/* ---- what comes from elsewhere ---- */

/* As far as the record goes it is made here, with all that it holds. */
static void tell_arrived(const struct call_scene *s, const struct call_place *p) {
    struct stat st;
    struct buf *bytes = &s->r->bytes;
    FILE_CLOSE int fd = openat(p->parent, p->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    buf_clear(bytes);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
        file_read_fd(fd, (size_t)st.st_size + 1, bytes, NULL) != 0)
        return;
    struct disk_operation o = {.deed = DISK_CREATE,
                               .path = p->path,
                               .mode = st.st_mode & 07777,
                               .file = call_scene_new_number(s, &st)};
    call_scene_tell(s, o);
    o.deed = DISK_WRITE;
    o.size = bytes->len;
    o.bytes = (const unsigned char *)bytes->data;
    if (o.size)
        call_scene_tell(s, o);
}

/* ---- rename, link ---- */

static void tell_rename(const struct call_scene *s, const struct call_place *from,
                        const struct call_place *to, bool exchanged, const struct stat *st) {
    call_scene_tell(s, (struct disk_operation){.deed = exchanged ? DISK_EXCHANGE : DISK_RENAME,
                                               .directory = S_ISDIR(st->st_mode),
                                               .file = call_scene_number(s, st),
                                               .path = from->path,
                                               .to = to->path});
}

static int64_t rename_file(const struct call_scene *s, int from_dir, uint64_t from, int to_dir,
                           uint64_t to, unsigned flags) {
    CALL_PLACE_CLOSE struct call_place a = CALL_PLACE_NONE;
    CALL_PLACE_CLOSE struct call_place b = CALL_PLACE_NONE;
    bool first = call_place_find(s, from_dir, from, false, &a);
    bool second = call_place_find_beside(s, to_dir, to, &a, &b);
    if (!first && !second)
        return CALL_GOES_ON;
    if (first != second) {
        s->r->seen.across++;
        if (a.parent < 0 || b.parent < 0)
            return CALL_GOES_ON;
    }
    call_place_look(&a);
    if (syscall(SYS_renameat2, a.parent, a.name, b.parent, b.name, flags) != 0)
        return -errno;
    if (first && second)
        tell_rename(s, &a, &b, flags & RENAME_EXCHANGE, &a.st);
    else if (second)
        tell_arrived(s, &b);
    else
        call_scene_tell(s, (struct disk_operation){.deed = DISK_UNLINK,
                                                   .file = call_scene_number(s, &a.st),
                                                   .path = a.path});
    if (flags & RENAME_EXCHANGE || (S_ISDIR(a.st.st_mode) && first != second))
        call_scene_moved(s);
    return 0;
}

int64_t call_does_rename(const struct call_scene *s) {
    return rename_file(s, AT_FDCWD, s->c->args[0], AT_FDCWD, s->c->args[1], 0);
}

int64_t call_does_rename_at(const struct call_scene *s) {
    const uint64_t *a = s->c->args;
    return rename_file(s, (int)a[0], a[1], (int)a[2], a[3],
                       s->c->nr == SYS_renameat2 ? (unsigned)a[4] : 0);
}

static int64_t link_file(const struct call_scene *s, int from_dir, uint64_t from, int to_dir,
                         uint64_t to, bool follow) {
    CALL_PLACE_CLOSE struct call_place a = CALL_PLACE_NONE;
    CALL_PLACE_CLOSE struct call_place b = CALL_PLACE_NONE;
    struct stat st = {0};
    bool first = call_place_find(s, from_dir, from, follow, &a);
    if (!call_place_find(s, to_dir, to, false, &b))
        return CALL_GOES_ON;
    s->r->seen.across += !first;
    if (a.parent < 0)
        return CALL_GOES_ON;
    if (linkat(a.parent, a.name, b.parent, b.name, 0) != 0)
        return -errno;
    if (!first)
        tell_arrived(s, &b);
    else if (look(&b, &st))
        call_scene_tell(s, (struct disk_operation){.deed = DISK_LINK,
                                                   .file = call_scene_number(s, &st),
                                                   .path = a.path,
                                                   .to = b.path});
    return 0;
}

int64_t call_does_link(const struct call_scene *s) {
    return link_file(s, AT_FDCWD, s->c->args[0], AT_FDCWD, s->c->args[1], false);
}

int64_t call_does_link_at(const struct call_scene *s) {
    const uint64_t *a = s->c->args;
    return link_file(s, (int)a[0], a[1], (int)a[2], a[3], a[4] & AT_SYMLINK_FOLLOW);
}

static int64_t make_symlink(const struct call_scene *s, uint64_t text, int dir, uint64_t at) {
    CALL_PLACE_CLOSE struct call_place p = CALL_PLACE_NONE;
    char says[PATH_MAX] = "";
    struct stat st;
    if (!call_place_find(s, dir, at, false, &p))
        return CALL_GOES_ON;
    for (size_t i = 0; i < sizeof(says); i++) {
        if (!call_scene_read(s, text + i, says + i, 1))
            return -EFAULT;
        if (!says[i])
            break;
    }
    says[sizeof(says) - 1] = '\0';
    if (symlinkat(says, p.parent, p.name) != 0)
        return -errno;
    if (look(&p, &st))
        call_scene_tell(s, (struct disk_operation){.deed = DISK_SYMLINK,
                                                   .file = call_scene_new_number(s, &st),
                                                   .path = p.path,
                                                   .mode = 0777,
                                                   .to = says});
    return 0;
}

int64_t call_does_symlink(const struct call_scene *s) {
    return make_symlink(s, s->c->args[0], AT_FDCWD, s->c->args[1]);
}

int64_t call_does_symlink_at(const struct call_scene *s) {
    return make_symlink(s, s->c->args[0], (int)s->c->args[1], s->c->args[2]);
}

/* ---- removed and made ---- */

static int64_t unlink_file(const struct call_scene *s, int dir, uint64_t at, bool directory) {
    CALL_PLACE_CLOSE struct call_place p = CALL_PLACE_NONE;
    if (!call_place_find(s, dir, at, false, &p))
        return CALL_GOES_ON;
    call_place_look(&p);
    if (unlinkat(p.parent, p.name, directory ? AT_REMOVEDIR : 0) != 0)
        return -errno;
    call_scene_tell(s, (struct disk_operation){.deed = directory ? DISK_RMDIR : DISK_UNLINK,
                                               .file = call_scene_number(s, &p.st),
                                               .path = p.path});
    return 0;
}

int64_t call_does_unlink(const struct call_scene *s) {
    return unlink_file(s, AT_FDCWD, s->c->args[0], false);
}

int64_t call_does_rmdir(const struct call_scene *s) {
    return unlink_file(s, AT_FDCWD, s->c->args[0], true);
}

int64_t call_does_unlink_at(const struct call_scene *s) {
    return unlink_file(s, (int)s->c->args[0], s->c->args[1], s->c->args[2] & AT_REMOVEDIR);
}

static int64_t make_dir(const struct call_scene *s, int dir, uint64_t at, uint64_t mode) {
    CALL_PLACE_CLOSE struct call_place p = CALL_PLACE_NONE;
    struct stat st;
    if (!call_place_find(s, dir, at, false, &p))
        return CALL_GOES_ON;
    if (mkdirat(p.parent, p.name, masked(s, mode)) != 0)
        return -errno;
    if (!look(&p, &st))
        return 0;
    call_scene_made(s, &st);
    call_scene_tell(s, (struct disk_operation){.deed = DISK_MKDIR,
                                               .directory = true,
                                               .file = call_scene_new_number(s, &st),
                                               .path = p.path,
                                               .mode = st.st_mode & 07777});
    return 0;
}

int64_t call_does_mkdir(const struct call_scene *s) {
    return make_dir(s, AT_FDCWD, s->c->args[0], s->c->args[1]);
}

int64_t call_does_mkdir_at(const struct call_scene *s) {
    return make_dir(s, (int)s->c->args[0], s->c->args[1], s->c->args[2]);
}

/* ---- modes ---- */

static void tell_mode(const struct call_scene *s, const char *path, const struct stat *st,
                      uint64_t mode) {
    call_scene_tell(s, (struct disk_operation){.deed = DISK_MODE,
                                               .directory = S_ISDIR(st->st_mode),
                                               .file = call_scene_number(s, st),
                                               .path = path,
                                               .mode = (unsigned)mode & 07777});
}

/* By way of /proc, as the C library does it: a descriptor of O_PATH has no fchmod. */
static int change_mode(const struct call_place *p, mode_t mode, struct stat *ret) {
    char link[64];
    FILE_CLOSE int fd = openat(p->parent, p->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    return fd < 0 || fstat(fd, ret) != 0 || chmod(link, mode) != 0 ? -errno : 0;
}

static int64_t chmod_name(const struct call_scene *s, int dir, uint64_t at, uint64_t mode) {
    CALL_PLACE_CLOSE struct call_place p = CALL_PLACE_NONE;
    struct stat st;
    if (!call_place_find(s, dir, at, true, &p))
        return CALL_GOES_ON;
    int r = change_mode(&p, (mode_t)mode & 07777, &st);
    if (r == 0)
        tell_mode(s, p.path, &st, mode);
    return r;
}

int64_t call_does_chmod(const struct call_scene *s) {
    return chmod_name(s, AT_FDCWD, s->c->args[0], s->c->args[1]);
}

static int64_t chmod_open(const struct call_scene *s, uint64_t fd, uint64_t mode) {
    char path[PATH_MAX];
    struct stat st;
    FILE_CLOSE int own = call_scene_file(s, (int)fd, path, &st);
    if (own < 0)
        return CALL_GOES_ON;
    if (fchmod(own, (mode_t)mode & 07777) != 0)
        return -errno;
    if (st.st_nlink > 0)
        tell_mode(s, path, &st, mode);
    return 0;
}

/* With flags it is about a descriptor, or about a link, which has no mode. */
int64_t call_does_chmod_at(const struct call_scene *s) {
    const uint64_t *a = s->c->args;
    char empty = 1;
    if (s->c->nr != SYS_fchmodat && a[3] & AT_SYMLINK_NOFOLLOW)
        return CALL_GOES_ON;
    if (s->c->nr != SYS_fchmodat && a[3] & AT_EMPTY_PATH && call_scene_read(s, a[1], &empty, 1) &&
        !empty)
        return chmod_open(s, a[0], a[2]);
    return chmod_name(s, (int)a[0], a[1], a[2]);
}

int64_t call_does_fchmod(const struct call_scene *s) {
    return chmod_open(s, s->c->args[0], s->c->args[1]);
}

int64_t call_does_truncate(const struct call_scene *s) {
    CALL_PLACE_CLOSE struct call_place p = CALL_PLACE_NONE;
    struct stat st;
    if (!call_place_find(s, AT_FDCWD, s->c->args[0], true, &p))
        return CALL_GOES_ON;
    FILE_CLOSE int fd = openat(p.parent, p.name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)s->c->args[1]) != 0 || fstat(fd, &st) != 0)
        return -errno;
    call_scene_tell(s, (struct disk_operation){.deed = DISK_TRUNCATE,
                                               .file = call_scene_number(s, &st),
                                               .path = p.path,
                                               .offset = s->c->args[1]});
    return 0;
}
