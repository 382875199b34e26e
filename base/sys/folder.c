#include "base/sys/folder.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/random.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A descriptor of a directory by which things in it can be named, and nothing else. */
enum { WAY = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* ---- what is in the way ---- */

static int refuse(const struct folder *f, const char *name, mode_t mode, struct err *err) {
    if (S_ISLNK(mode))
        return err_say(err, -ELOOP,
                       "%s/%s is a symbolic link, and none is followed in there: remove it",
                       f->path, name);
    return err_say(err, -EINVAL, "%s/%s is %s and no plain file: remove it", f->path, name,
                   S_ISDIR(mode)    ? "a directory"
                   : S_ISFIFO(mode) ? "a FIFO"
                   : S_ISSOCK(mode) ? "a socket"
                                    : "a device");
}

/* What goes by the name here is refused where it may not be written over; nothing may be. */
static int check_free(const struct folder *f, int at, const char *last, const char *name,
                      struct err *err) {
    struct stat st;
    if (fstatat(at, last, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_set(err, -errno, "look at %s/%s", f->path, name);
    return S_ISREG(st.st_mode) ? 0 : refuse(f, name, st.st_mode, err);
}

/* ---- the way to a name ---- */

/* One part further. Takes at, also when it fails. */
static int step(const struct folder *f, int at, const char *part, const char *name,
                struct err *err) {
    struct stat st;
    int fd = openat(at, part, WAY), code = fd < 0 ? -errno : 0;
    bool odd = code == -ENOTDIR || code == -ELOOP;
    if (odd && fstatat(at, part, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
        code = refuse(f, name, st.st_mode, err);
    else if (code)
        err_set(err, code, "open %s/%s", f->path, name);
    close(at);
    return code ? code : fd;
}

/* Goes to the directory that holds the last part of name and copies that part; directories on the
 * way are made with the mode, 0: they must be there. Returns a descriptor of it. */
static int walk(const struct folder *f, const char *name, mode_t mode, char ret_last[NAME_MAX + 1],
                struct err *err) {
    char way[PATH_MAX], *rest = way, *part, *next;
    if (!str_copy(way, sizeof(way), name))
        return err_set(err, -ENAMETOOLONG, "open a file in %s", f->path);
    FILE_CLOSE int at = openat(f->fd, ".", WAY);
    if (at < 0)
        return err_set(err, -errno, "open %s", f->path);
    for (part = strsep(&rest, "/"); part; part = next) {
        while ((next = strsep(&rest, "/")) && !*next)
            ;
        if (!*part || str_eq(part, "..") || strlen(part) > NAME_MAX)
            return err_say(err, -EINVAL, "%s/%s leads out of there, or is no name", f->path, name);
        if (!next)
            break;
        if (mode && mkdirat(at, part, mode) < 0 && errno != EEXIST)
            return err_set(err, -errno, "make the directory %s/%s", f->path, name);
        /* What is in the way is named as far as it goes. */
        char so_far[PATH_MAX];
        snprintf(so_far, sizeof(so_far), "%.*s", (int)(part - way + (ptrdiff_t)strlen(part)), name);
        if ((at = step(f, at, part, so_far, err)) < 0)
            return at;
    }
    str_copy(ret_last, NAME_MAX + 1, part ? part : ".");
    return file_keep(&at);
}

/* ---- the folder ---- */

int folder_open(struct folder *ret, const char *path, struct err *err) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, -errno, "open the directory %s", path);
    *ret = (struct folder){fd, mem_strdup(path)};
    return 0;
}

/* Opens a directory of the folder itself, to be read. */
static int open_directory(const struct folder *f, const char *name, struct err *err) {
    char last[NAME_MAX + 1];
    FILE_CLOSE int at = walk(f, name, 0, last, err);
    if (at < 0)
        return at;
    FILE_CLOSE int way = step(f, openat(at, ".", WAY), last, name, err);
    if (way < 0)
        return way;
    int fd = openat(way, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : err_set(err, -errno, "open the directory %s/%s", f->path, name);
}

int folder_enter(struct folder *ret, const struct folder *f, const char *name, struct err *err) {
    int fd = open_directory(f, name, err);
    if (fd < 0)
        return fd;
    *ret = (struct folder){fd, mem_printf("%s/%s", f->path, name)};
    return 0;
}

int folder_enter_parent(struct folder *ret, const struct folder *f, const char *name,
                        const char **ret_last, struct err *err) {
    char way[PATH_MAX];
    const char *slash = strrchr(name, '/');
    snprintf(way, sizeof(way), "%.*s", slash ? (int)(slash - name) : 1, slash ? name : ".");
    *ret_last = slash ? slash + 1 : name;
    return folder_enter(ret, f, way, err);
}

void folder_close(struct folder *f) {
    if (!f->path)
        return;
    file_close(&f->fd);
    free(f->path);
    *f = FOLDER_NONE;
}

static bool look(const struct folder *f, const char *name, struct stat *ret) {
    char last[NAME_MAX + 1];
    FILE_CLOSE int at = walk(f, name, 0, last, NULL);
    return at >= 0 && fstatat(at, last, ret, AT_SYMLINK_NOFOLLOW) == 0;
}

bool folder_has(const struct folder *f, const char *name) {
    struct stat st;
    return look(f, name, &st);
}

bool folder_has_directory(const struct folder *f, const char *name) {
    struct stat st;
    return look(f, name, &st) && S_ISDIR(st.st_mode);
}

/* ---- reading ---- */

/* What lies there is held before it is looked at, and only then opened: to open a device or a FIFO
 * may do something by itself. */
static int open_plain(const struct folder *f, int at, const char *last, int flags, const char *name,
                      struct err *err) {
    char held[64];
    struct stat st;
    FILE_CLOSE int thing = openat(at, last, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (thing < 0 || fstat(thing, &st) < 0)
        return err_set(err, -errno, "open %s/%s", f->path, name);
    if (!S_ISREG(st.st_mode))
        return refuse(f, name, st.st_mode, err);
    if ((flags & O_ACCMODE) != O_RDONLY && st.st_nlink > 1)
        return err_say(err, -EMLINK,
                       "%s/%s has a second name elsewhere, so nothing is written to it: remove it",
                       f->path, name);
    snprintf(held, sizeof(held), "/proc/self/fd/%d", thing);
    int fd = open(held, flags | O_CLOEXEC);
    return fd >= 0 ? fd : err_set(err, -errno, "open %s/%s", f->path, name);
}

int folder_open_file(const struct folder *f, const char *name, struct err *err) {
    char last[NAME_MAX + 1];
    FILE_CLOSE int at = walk(f, name, 0, last, err);
    return at < 0 ? at : open_plain(f, at, last, O_RDONLY, name, err);
}

int folder_open_growing(const struct folder *f, const char *name, struct err *err) {
    char last[NAME_MAX + 1];
    FILE_CLOSE int at = walk(f, name, 0, last, err);
    if (at < 0)
        return at;
    int fd = open_plain(f, at, last, O_RDWR, name, NULL);
    return fd >= 0 ? fd : open_plain(f, at, last, O_RDONLY, name, err);
}

int folder_find(const struct folder *f, const char *name, struct err *err) {
    char last[NAME_MAX + 1];
    struct stat st;
    FILE_CLOSE int at = walk(f, name, 0, last, err);
    if (at < 0)
        return at;
    int fd = openat(at, last, O_PATH | O_NOFOLLOW | O_CLOEXEC), code = -errno;
    if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISLNK(st.st_mode))
        return fd;
    bool link = fd >= 0;
    file_close(&fd);
    return link ? refuse(f, name, S_IFLNK, err) : err_set(err, code, "find %s/%s", f->path, name);
}

int folder_read(const struct folder *f, const char *name, size_t max, struct buf *out,
                struct err *err) {
    FILE_CLOSE int fd = folder_open_file(f, name, err);
    int code = fd < 0 ? fd : file_read_fd(fd, max, out, err);
    return fd >= 0 && code ? (err_wrap(err, "%s/%s: ", f->path, name), code) : code;
}

int folder_read_last(const struct folder *f, const char *name, int lines, size_t max,
                     struct buf *out, struct err *err) {
    FILE_CLOSE int fd = folder_open_file(f, name, err);
    int code = fd < 0 ? fd : file_read_last(fd, lines, max, out, err);
    return fd >= 0 && code ? (err_wrap(err, "%s/%s: ", f->path, name), code) : code;
}

int folder_is_shown(const struct dirent *e) {
    return e->d_name[0] != '.';
}

int folder_list(const struct folder *f, const char *name, int (*wanted)(const struct dirent *),
                struct texts *ret, struct err *err) {
    struct dirent **names;
    FILE_CLOSE int fd = open_directory(f, name, err);
    if (fd < 0)
        return fd;
    int n = scandirat(fd, ".", &names, wanted, alphasort);
    if (n < 0)
        return err_set(err, -errno, "read the directory %s/%s", f->path, name);
    for (int i = 0; i < n; i++) {
        texts_add(ret, "%s", names[i]->d_name);
        free(names[i]);
    }
    free(names);
    return 0;
}

/* ---- writing ---- */

/* A file beside the name that nobody can have foreseen, and that says who writes it. */
static int create_beside(const struct folder *f, int at, const char *last,
                         char ret_beside[NAME_MAX + 1], struct err *err) {
    if (snprintf(ret_beside, NAME_MAX + 1, "%s.%d.%016llx.tmp", last, (int)getpid(),
                 (unsigned long long)random_u64()) > NAME_MAX)
        return err_set(err, -ENAMETOOLONG, "make %s/%s", f->path, last);
    int fd = openat(at, ret_beside, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return fd >= 0 ? fd : err_set(err, -errno, "make %s/%s", f->path, ret_beside);
}

/* Between the look at what goes by the name and this somebody may put a link there: it is replaced
 * like any other name, and not followed. */
static int take_name(const struct folder *f, int at, const char *beside, const char *last,
                     const char *name, struct err *err) {
    if (renameat(at, beside, at, last) == 0)
        return 0;
    return err_set(err, -errno, "rename %s/%s to %s", f->path, beside, name);
}

int folder_create(const struct folder *f, const char *name, struct err *err) {
    char last[NAME_MAX + 1], beside[NAME_MAX + 1];
    FILE_CLOSE int at = walk(f, name, 0, last, err);
    int code = at < 0 ? at : check_free(f, at, last, name, err);
    FILE_CLOSE int fd = code ? code : create_beside(f, at, last, beside, err);
    if (fd < 0)
        return fd;
    code = take_name(f, at, beside, last, name, err);
    if (!code)
        return file_keep(&fd);
    unlinkat(at, beside, 0);
    return code;
}

int folder_append(const struct folder *f, const char *name, struct err *err) {
    char last[NAME_MAX + 1];
    FILE_CLOSE int at = walk(f, name, 0, last, err);
    if (at < 0)
        return at;
    int fd =
        openat(at, last, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd >= 0)
        return fd;
    if (errno != EEXIST)
        return err_set(err, -errno, "make %s/%s", f->path, name);
    return open_plain(f, at, last, O_WRONLY | O_APPEND, name, err);
}

static int replace(const struct folder *f, const char *name, const void *data, size_t len,
                   bool synced, struct err *err) {
    char last[NAME_MAX + 1], beside[NAME_MAX + 1];
    FILE_CLOSE int at = walk(f, name, 0, last, err);
    int code = at < 0 ? at : check_free(f, at, last, name, err);
    FILE_CLOSE int fd = code ? -1 : create_beside(f, at, last, beside, err);
    if (code || fd < 0)
        return code ? code : fd;
    if ((code = file_write_all(fd, data, len, err)))
        err_wrap(err, "%s/%s: ", f->path, name);
    if (!code && synced && fsync(fd) < 0)
        code = err_set(err, -errno, "sync %s/%s", f->path, name);
    if (!code)
        code = take_name(f, at, beside, last, name, err);
    if (code)
        unlinkat(at, beside, 0);
    return code;
}

int folder_write(const struct folder *f, const char *name, const void *data, size_t len,
                 struct err *err) {
    return replace(f, name, data, len, false, err);
}

int folder_write_synced(const struct folder *f, const char *name, const void *data, size_t len,
                        struct err *err) {
    char last[NAME_MAX + 1];
    int code = replace(f, name, data, len, true, err);
    FILE_CLOSE int at = code ? -1 : walk(f, name, 0, last, NULL);
    FILE_CLOSE int fd = at < 0 ? -1 : openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!code && (fd < 0 || fsync(fd) < 0))
        code = err_set(err, -errno, "sync the directory of %s/%s", f->path, name);
    return code;
}

/* ---- directories ---- */

int folder_make(const struct folder *f, const char *name, mode_t mode, struct err *err) {
    char last[NAME_MAX + 1];
    FILE_CLOSE int at = walk(f, name, mode, last, err);
    if (at < 0)
        return at;
    if (mkdirat(at, last, mode) < 0 && errno != EEXIST)
        return err_set(err, -errno, "make the directory %s/%s", f->path, name);
    at = step(f, at, last, name, err);
    return at < 0 ? at : 0;
}

int folder_remove(const struct folder *f, const char *name, struct err *err) {
    char last[NAME_MAX + 1];
    struct stat st;
    struct err why;
    FILE_CLOSE int at = walk(f, name, 0, last, &why);
    if (at < 0)
        return at == -ENOENT ? 0 : err_say(err, at, "%s", why.msg);
    if (fstatat(at, last, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_set(err, -errno, "remove %s/%s", f->path, name);
    if (S_ISLNK(st.st_mode))
        return refuse(f, name, st.st_mode, err);
    int code = file_remove_tree_at(at, last, st.st_dev);
    return code ? err_set(err, code, "remove %s/%s", f->path, name) : 0;
}

void folder_unlink(const struct folder *f, const char *name) {
    char last[NAME_MAX + 1];
    FILE_CLOSE int at = walk(f, name, 0, last, NULL);
    if (at >= 0)
        unlinkat(at, last, 0);
}
