#include "faults/mechanism/file_damage.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 16, DEPTH_MAX = 8, ASIDE_MAX = 64 };

/* To read and to write what is a plain file with one name. */
static int open_to_change(const struct folder *in, const char *path, struct stat *ret,
                          struct err *err) {
    char same[64];
    FILE_CLOSE int way = folder_find(in, path, err);
    if (way < 0)
        return way;
    if (fstat(way, ret) != 0 || !S_ISREG(ret->st_mode))
        return err_say(err, -EINVAL, "%s/%s is no plain file", in->path, path);
    if (ret->st_nlink > 1)
        return err_say(err, -EMLINK,
                       "%s/%s has a second name, which may lie elsewhere: it is left alone",
                       in->path, path);
    snprintf(same, sizeof(same), "/proc/self/fd/%d", way);
    int fd = open(same, O_RDWR | O_CLOEXEC);
    return fd >= 0 ? fd : err_set(err, -errno, "open %s/%s to change it", in->path, path);
}

int file_truncate(const struct folder *in, const char *path, int64_t bytes, struct err *err) {
    struct stat st;
    FILE_CLOSE int fd = open_to_change(in, path, &st, err);
    if (fd < 0)
        return fd;
    if (st.st_size <= bytes)
        return err_say(err, -EINVAL, "%s/%s has %lld bytes, and is not to be cut at %lld", in->path,
                       path, (long long)st.st_size, (long long)bytes);
    return ftruncate(fd, bytes) == 0 ? 0 : err_set(err, -errno, "truncate %s/%s", in->path, path);
}

int file_flip(const struct folder *in, const char *path, int64_t offset, int bit, struct err *err) {
    struct stat st;
    unsigned char byte;
    FILE_CLOSE int fd = open_to_change(in, path, &st, err);
    if (fd < 0)
        return fd;
    if (st.st_size <= offset)
        return err_say(err, -EINVAL, "%s/%s has %lld bytes, and none at %lld", in->path, path,
                       (long long)st.st_size, (long long)offset);
    const struct timespec times[] = {st.st_atim, st.st_mtim};
    bool done = pread(fd, &byte, 1, offset) == 1;
    byte ^= (unsigned char)(1U << bit);
    if (!done || pwrite(fd, &byte, 1, offset) != 1)
        return err_set(err, -EIO, "change a byte of %s/%s", in->path, path);
    futimens(fd, times);
    return 0;
}

int file_delete(const struct folder *in, const char *path, struct err *err) {
    if (folder_has_directory(in, path))
        return folder_remove(in, path, err);
    folder_unlink(in, path);
    return folder_has(in, path) ? err_say(err, -EIO, "%s/%s cannot be removed", in->path, path) : 0;
}

int file_exchange(const struct folder *in, const char *path, const char *other, struct err *err) {
    struct folder a = FOLDER_NONE, b = FOLDER_NONE;
    const char *one, *two;
    int r = folder_enter_parent(&a, in, path, &one, err);
    r = r ? r : folder_enter_parent(&b, in, other, &two, err);
    if (r == 0 && renameat2(a.fd, one, b.fd, two, RENAME_EXCHANGE) != 0)
        r = err_set(err, -errno, "exchange %s/%s and %s", in->path, path, other);
    folder_close(&a);
    folder_close(&b);
    return r;
}

/* ---- a copy ---- */

struct copy {
    int64_t left;
    int depth;
};

static int copy_bytes(int from, int to, struct copy *c) {
    char chunk[CHUNK];
    ssize_t n;
    while ((n = read(from, chunk, sizeof(chunk))) > 0) {
        c->left -= n;
        int r = c->left < 0 ? -EFBIG : file_write_all(to, chunk, (size_t)n, NULL);
        if (r)
            return r;
    }
    return n < 0 ? -errno : 0;
}

static int copy_file(int from, const char *source, int to, const char *name, mode_t mode,
                     struct copy *c) {
    FILE_CLOSE int in = openat(from, source, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    FILE_CLOSE int out =
        in < 0 ? -1 : openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode & 0777);
    return out < 0 ? -errno : copy_bytes(in, out, c);
}

static int copy_link(int from, const char *source, int to, const char *name) {
    char text[PATH_MAX];
    ssize_t n = readlinkat(from, source, text, sizeof(text) - 1);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    return symlinkat(text, to, name) == 0 ? 0 : -errno;
}

static int copy_name(int from, const char *source, int to, const char *name, struct copy *c);

static int copy_directory(int from, const char *source, int to, const char *name, mode_t mode,
                          struct copy *c) {
    enum { WAY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };
    int in = openat(from, source, WAY);
    FILE_CLOSE_DIR DIR *d = in < 0 ? NULL : fdopendir(in);
    FILE_CLOSE int out = !d || mkdirat(to, name, mode & 0777) != 0 ? -1 : openat(to, name, WAY);
    int r = out < 0 ? -errno : ++c->depth > DEPTH_MAX ? -ELOOP : 0;
    for (struct dirent *e; r == 0 && (e = readdir(d));)
        if (!str_eq(e->d_name, ".") && !str_eq(e->d_name, ".."))
            r = copy_name(in, e->d_name, out, e->d_name, c);
    c->depth--;
    return r;
}

static int copy_name(int from, const char *source, int to, const char *name, struct copy *c) {
    struct stat st;
    if (fstatat(from, source, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return -errno;
    return S_ISREG(st.st_mode)   ? copy_file(from, source, to, name, st.st_mode, c)
           : S_ISDIR(st.st_mode) ? copy_directory(from, source, to, name, st.st_mode, c)
           : S_ISLNK(st.st_mode) ? copy_link(from, source, to, name)
                                 : -EINVAL;
}

/* A name beside it that nobody takes for something of the job. */
static void aside(char ret[ASIDE_MAX]) {
    snprintf(ret, ASIDE_MAX, ".rankquake-%d.tmp", (int)getpid());
}

/* What lies aside gets the name, and what had it goes. */
static int take_place(const struct folder *parent, const char *name, const char *from) {
    if (renameat2(parent->fd, from, parent->fd, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (renameat2(parent->fd, from, parent->fd, name, RENAME_EXCHANGE) != 0)
        return -errno;
    return file_delete(parent, from, NULL);
}

int file_replace(const struct folder *in, const char *path, const struct folder *from,
                 const char *source, struct err *err) {
    struct folder parent = FOLDER_NONE, other = FOLDER_NONE;
    struct copy c = {.left = FILE_COPY_MAX};
    const char *name, *of;
    char copy[ASIDE_MAX];
    int r = folder_enter_parent(&parent, in, path, &name, err);
    r = r ? r : folder_enter_parent(&other, from, source, &of, err);
    aside(copy);
    int done = r ? r : copy_name(other.fd, of, parent.fd, copy, &c);
    done = done ? done : take_place(&parent, name, copy);
    if (r == 0 && done) {
        r = err_set(err, done, "put a copy of %s/%s in the place of %s/%s", from->path, source,
                    in->path, path);
        file_delete(&parent, copy, NULL);
    }
    folder_close(&parent);
    folder_close(&other);
    return r;
}

/* ---- what points at another ---- */

static bool is_link(const struct folder *parent, const char *name) {
    struct stat st;
    return fstatat(parent->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

static int read_text(const struct folder *parent, const char *name, struct buf *out,
                     struct err *err) {
    enum { POINTER_MAX = 4096 };
    char text[POINTER_MAX];
    if (!is_link(parent, name))
        return folder_read(parent, name, POINTER_MAX, out, err);
    ssize_t n = readlinkat(parent->fd, name, text, sizeof(text));
    if (n < 0)
        return err_set(err, -errno, "read the link %s/%s", parent->path, name);
    buf_put(out, text, (size_t)n);
    return 0;
}

int file_pointer_read(const struct folder *in, const char *path, char *ret, size_t size,
                      struct err *err) {
    BUF_FINI struct buf text = {0};
    struct folder parent;
    const char *name;
    int r = folder_enter_parent(&parent, in, path, &name, err);
    if (r)
        return r;
    r = read_text(&parent, name, &text, err);
    folder_close(&parent);
    if (r)
        return r;
    const char *all = buf_str(&text);
    size_t n = strcspn(all, "\n");
    snprintf(ret, size, "%.*s", (int)n, all);
    return all[n] && all[n + 1] ? err_say(err, -EINVAL,
                                          "%s/%s has more than one line: it is "
                                          "nothing that points at another",
                                          in->path, path)
                                : 0;
}

static int write_aside(const struct folder *parent, const char *name, const char *copy,
                       const char *text) {
    if (is_link(parent, name))
        return symlinkat(text, parent->fd, copy) == 0 ? 0 : -errno;
    BUF_FINI struct buf was = {0}, now = {0};
    struct stat st;
    int r = read_text(parent, name, &was, NULL);
    if (r || fstatat(parent->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return r ? r : -errno;
    buf_printf(&now, "%s%s", text, str_ends(buf_str(&was), "\n") ? "\n" : "");
    FILE_CLOSE int fd =
        openat(parent->fd, copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st.st_mode & 0777);
    return fd < 0 ? -errno : file_write_all(fd, now.data, now.len, NULL);
}

int file_pointer_write(const struct folder *in, const char *path, const char *text,
                       struct err *err) {
    struct folder parent;
    const char *name;
    char copy[ASIDE_MAX];
    int r = folder_enter_parent(&parent, in, path, &name, err);
    if (r)
        return r;
    aside(copy);
    int done = write_aside(&parent, name, copy, text);
    if (done == 0 && renameat(parent.fd, copy, parent.fd, name) != 0)
        done = -errno;
    if (done) {
        r = err_set(err, done, "have %s/%s say \"%.100s\"", in->path, path, text);
        folder_unlink(&parent, copy);
    }
    folder_close(&parent);
    return r;
}

/* The last number of a text: where its digits are. */
struct digits {
    size_t at, n;
    int64_t value;
};

static bool find_digits(const char *text, struct digits *ret) {
    size_t end = strlen(text);
    char number[20];
    while (end && !strchr("0123456789", text[end - 1]))
        end--;
    size_t at = end;
    while (at && strchr("0123456789", text[at - 1]))
        at--;
    if (!end || end - at >= sizeof(number))
        return false;
    snprintf(number, sizeof(number), "%.*s", (int)(end - at), text + at);
    *ret = (struct digits){at, end - at, strtoll(number, NULL, 10)};
    return true;
}

/* As the pointer writes numbers: as wide as it was, where it was filled with noughts. */
static void put_number(const char *text, const struct digits *d, int64_t value, char *ret,
                       size_t size) {
    int width = text[d->at] == '0' ? (int)d->n : 0;
    snprintf(ret, size, "%.*s%0*lld%s", (int)d->at, text, width, (long long)value,
             text + d->at + d->n);
}

/* The highest number below that of the pointer, and whether one above is there, among the names that
 * are written as the one which has its number. */
static int64_t older_of(const struct texts *names, int64_t value) {
    struct digits d, e;
    int64_t best = -1;
    for (size_t i = 0; i < names->n; i++) {
        const char *like = names->v[i];
        if (!find_digits(like, &d) || d.value != value)
            continue;
        for (size_t k = 0; k < names->n; k++) {
            const char *one = names->v[k];
            if (find_digits(one, &e) && e.at == d.at && strncmp(one, like, d.at) == 0 &&
                str_eq(one + e.at + e.n, like + d.at + d.n) && e.value < value && e.value > best)
                best = e.value;
        }
    }
    return best;
}

static int64_t missing_of(const struct texts *names, int64_t value) {
    struct digits d;
    for (size_t i = 0; i < names->n; i++)
        if (find_digits(names->v[i], &d) && d.value >= value)
            value = d.value;
    return value + 1;
}

/* Where what it points at lies: its own directory, or as its text leads from there. */
static int list_targets(const struct folder *in, const char *path, const char *text,
                        struct texts *ret, struct err *err) {
    struct folder parent = FOLDER_NONE, at = FOLDER_NONE;
    const char *name, *last;
    int r = folder_enter_parent(&parent, in, path, &name, err);
    r = r ? r : folder_enter_parent(&at, &parent, text, &last, err);
    r = r ? r : folder_list(&at, ".", NULL, ret, err);
    folder_close(&at);
    folder_close(&parent);
    return r;
}

int file_pointer_other(const struct folder *in, const char *path, const char *text, bool missing,
                       char *ret, size_t size, struct err *err) {
    TEXTS_FINI struct texts names = {0};
    struct digits d;
    if (!find_digits(text, &d))
        return err_say(err, -EINVAL, "%s/%s says \"%.100s\", in which there is no number", in->path,
                       path, text);
    int r = list_targets(in, path, text, &names, err);
    if (r)
        return r;
    int64_t other = missing ? missing_of(&names, d.value) : older_of(&names, d.value);
    if (other < 0)
        return err_say(err, -ENOENT, "%s/%s says \"%.100s\", and nothing older lies there",
                       in->path, path, text);
    put_number(text, &d, other, ret, size);
    return 0;
}
