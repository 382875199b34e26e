#include "base/sys/file.h"

#include "base/mem.h"
#include "base/sys/random.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

void file_close(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int file_keep(int *fd) {
    int kept = *fd;
    *fd = -1;
    return kept;
}

void file_close_dir(DIR **d) {
    if (*d)
        closedir(*d);
    *d = NULL;
}

int file_read_fd(int fd, size_t max, struct buf *out, struct err *err) {
    size_t before = out->len;
    for (;;) {
        char chunk[16384];
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            return 0;
        if (n > 0 && out->len - before + (size_t)n <= max) {
            buf_put(out, chunk, (size_t)n);
            continue;
        }
        int code = n < 0 ? -errno : -EFBIG;
        out->len = before;
        return err_set(err, code, "read");
    }
}

int file_read(const char *path, size_t max, struct buf *out, struct err *err) {
    FILE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, -errno, "open %s", path);
    int code = file_read_fd(fd, max, out, err);
    return code ? (err_wrap(err, "%s: ", path), code) : 0;
}

static bool is_callers_own(const char *path) {
    return strcmp(path, "/dev/stdin") == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
           strncmp(path, "/proc/self/fd/", 14) == 0;
}

static const char *kind_of(mode_t mode) {
    return S_ISFIFO(mode)   ? "a FIFO"
           : S_ISSOCK(mode) ? "a socket"
           : S_ISCHR(mode)  ? "a device"
           : S_ISBLK(mode)  ? "a disk"
                            : "no plain file";
}

/* O_PATH finds a file without opening it: nobody can put another in its place meanwhile. */
int file_open_plain(const char *path, struct err *err) {
    char found[32];
    struct stat st;
    FILE_CLOSE int at = open(path, O_PATH | O_CLOEXEC);
    if (at < 0 || fstat(at, &st) < 0)
        return err_set(err, -errno, "open %s", path);
    if (S_ISDIR(st.st_mode))
        return err_say(err, -EISDIR, "%s is a directory", path);
    if (!S_ISREG(st.st_mode) && !is_callers_own(path))
        return err_say(err, -EINVAL, "%s is %s, and only plain files are read", path,
                       kind_of(st.st_mode));
    snprintf(found, sizeof(found), "/proc/self/fd/%d", at);
    int fd = open(S_ISREG(st.st_mode) ? found : path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 ? fd : err_set(err, -errno, "open %s", path);
}

int file_read_plain(const char *path, size_t max, struct buf *out, struct err *err) {
    FILE_CLOSE int fd = file_open_plain(path, err);
    int code = fd < 0 ? fd : file_read_fd(fd, max, out, err);
    return code && fd >= 0 ? (err_wrap(err, "%s: ", path), code) : code;
}

bool file_path_of(int fd, char *ret, size_t size) {
    char link[32];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, ret, size - 1);
    ret[n > 0 ? n : 0] = '\0';
    return *ret == '/';
}

static void make_plain(char *text, size_t n) {
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < ' ' && text[i] != '\n' && text[i] != '\t')
            text[i] = text[i] == '\r' ? '\n' : ' ';
}

int file_read_last(int fd, int lines, size_t max, struct buf *out, struct err *err) {
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_set(err, -errno, "look at a file");
    char *text = S_ISREG(st.st_mode) && st.st_size > 0 ? mem_alloc(max, 1) : NULL;
    off_t from = (size_t)st.st_size > max ? st.st_size - (off_t)max : 0;
    ssize_t n = text ? pread(fd, text, max, from) : 0;
    if (n <= 0) {
        int code = n < 0 ? -errno : -ENODATA;
        free(text);
        return err_set(err, code, "read");
    }
    make_plain(text, (size_t)n);
    size_t at = (size_t)n - 1;
    for (int seen = 0; at > 0; at--)
        if (text[at - 1] == '\n' && ++seen == lines)
            break;
    buf_put(out, text + at, (size_t)n - at);
    free(text);
    return 0;
}

int file_write_all(int fd, const void *data, size_t len, struct err *err) {
    for (const char *p = data; len > 0;) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno != EINTR)
            return err_set(err, -errno, "write");
        if (n > 0) {
            p += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

int file_write(const char *path, const void *data, size_t len, struct err *err) {
    FILE_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_set(err, -errno, "open %s", path);
    int code = file_write_all(fd, data, len, err);
    return code ? (err_wrap(err, "%s: ", path), code) : 0;
}

/* The directory that holds path, "." when it names none. */
static void parent_of(const char *path, char ret[PATH_MAX]) {
    snprintf(ret, PATH_MAX, "%s", path);
    char *slash = strrchr(ret, '/');
    if (!slash)
        strcpy(ret, ".");
    else
        slash[slash == ret] = '\0';
}

static int sync_dir(const char *path, struct err *err) {
    char dir[PATH_MAX];
    parent_of(path, dir);
    FILE_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return err_set(err, -errno, "sync the directory %s", dir);
    return 0;
}

static int write_synced(const char *path, const void *data, size_t len, struct err *err) {
    FILE_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_set(err, -errno, "make %s", path);
    int code = file_write_all(fd, data, len, err);
    if (code)
        return err_wrap(err, "%s: ", path), code;
    return fsync(fd) < 0 ? err_set(err, -errno, "sync %s", path) : 0;
}

/* A device, a FIFO, a pipe by /dev/stdout: a file in its place would take it from everybody. */
static bool is_no_plain_file(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static int write_into(const char *path, const void *data, size_t len, struct err *err) {
    FILE_CLOSE int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    int code = fd < 0 ? -errno : file_write_all(fd, data, len, NULL);
    return code ? err_set(err, code, "write %s", path) : 0;
}

int file_write_atomic(const char *path, const void *data, size_t len, struct err *err) {
    char beside[PATH_MAX];
    if (is_no_plain_file(path))
        return write_into(path, data, len, err);
    int n = snprintf(beside, sizeof(beside), "%s.%d.tmp", path, (int)getpid());
    if (n >= (int)sizeof(beside))
        return err_set(err, -ENAMETOOLONG, "write %s", path);
    unlink(beside);
    int code = write_synced(beside, data, len, err);
    if (!code && rename(beside, path) < 0)
        code = err_set(err, -errno, "rename %s to %s", beside, path);
    if (code) {
        unlink(beside);
        return code;
    }
    return sync_dir(path, err);
}

bool file_exists(const char *path) {
    return access(path, F_OK) == 0;
}

bool file_in_path(const char *path, const char *name) {
    char file[PATH_MAX];
    for (const char *p = path; p; p = strchr(p, ':') ? strchr(p, ':') + 1 : NULL) {
        int n = (int)strcspn(p, ":");
        if (snprintf(file, sizeof(file), "%.*s/%s", n ? n : 1, n ? p : ".", name) < PATH_MAX &&
            access(file, X_OK) == 0)
            return true;
    }
    return false;
}

const char *file_own_folder(char *buf, size_t size) {
    ssize_t n = readlink("/proc/self/exe", buf, size - 1);
    buf[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(buf, '/');
    if (slash)
        *slash = '\0';
    else
        snprintf(buf, size, ".");
    return buf;
}

static int make_dir(const char *path, mode_t mode, struct err *err) {
    struct stat st;
    if (mkdir(path, mode) == 0)
        return 0;
    if (errno == EEXIST && stat(path, &st) == 0)
        return S_ISDIR(st.st_mode) ? 0 : err_set(err, -ENOTDIR, "make the directory %s", path);
    return err_set(err, -errno, "make the directory %s", path);
}

int file_make_dirs(const char *path, mode_t mode, struct err *err) {
    char part[PATH_MAX];
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof(part))
        return err_set(err, len ? -ENAMETOOLONG : -EINVAL, "make the directory '%s'", path);
    if (mkdir(path, mode) == 0)
        return 0;
    for (size_t i = 1; i <= len; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        int code = make_dir(part, mode, err);
        if (code)
            return code;
    }
    return 0;
}

const char *file_temp_base(void) {
    const char *const names[] = {getenv("TMPDIR"), getenv("TEMP"), getenv("TMP"),
                                 "/tmp",           "/var/tmp",     "."};
    const char *first = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct stat st;
        if (!names[i] || !*names[i])
            continue;
        if (stat(names[i], &st) == 0 && S_ISDIR(st.st_mode) && access(names[i], W_OK | X_OK) == 0)
            return names[i];
        first = first ? first : names[i];
    }
    return first;
}

int file_make_temp_dir(char *path, struct err *err) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    size_t end = strlen(path), from = end;
    while (from > 0 && path[from - 1] == 'X')
        from--;
    assert(end - from >= 6);
    do {
        if (getrandom(path + from, end - from, 0) != (ssize_t)(end - from))
            return err_set(err, -errno, "draw a name for a directory");
        for (size_t i = from; i < end; i++)
            path[i] = letters[(unsigned char)path[i] % 32];
        if (mkdir(path, 0700) == 0)
            return 0;
    } while (errno == EEXIST);
    return err_set(err, -errno, "make the directory %s", path);
}

/* Each level takes a descriptor: what lies deeper is moved up to the first one. */
enum { DEEP = 64 };

struct removal {
    dev_t dev;
    int top; /* the directory that is removed */
    unsigned moved;
};

static int remove_below(struct removal *r, int dir, const char *name, int depth);

/* What vanishes meanwhile is what we wanted. */
static int remove_entries(struct removal *r, int dir, int depth) {
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), code = 0;
    FILE_CLOSE_DIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        code = -errno;
        file_close(&fd);
        return code;
    }
    for (struct dirent *e; !code && (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            code = remove_below(r, dir, e->d_name, depth + 1);
    return code;
}

static int move_up(struct removal *r, int dir, const char *name) {
    char up[40];
    snprintf(up, sizeof(up), "deep-%016llx", (unsigned long long)random_u64());
    r->moved++;
    return renameat(dir, name, r->top, up) < 0 && errno != ENOENT ? -errno : 0;
}

static int remove_below(struct removal *r, int dir, const char *name, int depth) {
    struct stat st;
    unsigned moved;
    int code;
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    if (depth == DEEP)
        return move_up(r, dir, name);
    FILE_CLOSE int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    if (fstat(fd, &st) < 0 || st.st_dev != r->dev)
        return -EBUSY;
    r->top = depth ? r->top : fd;
    do {
        moved = r->moved;
        code = remove_entries(r, fd, depth);
    } while (!depth && !code && r->moved != moved);
    if (!code && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        code = -errno;
    return code;
}

int file_remove_tree_at(int dir, const char *name, dev_t dev) {
    struct removal r = {.dev = dev, .top = -1};
    return remove_below(&r, dir, name, 0);
}

int file_remove_tree(const char *path, struct err *err) {
    struct stat st;
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : err_set(err, -errno, "remove %s", path);
    int code = file_remove_tree_at(AT_FDCWD, path, st.st_dev);
    return code ? err_set(err, code, "remove %s", path) : 0;
}
