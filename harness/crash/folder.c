#include "harness/crash/folder.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/texts.h"
#include "harness/crash/image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- writing ---- */

struct writing {
    int fd;
    const char *path;
    struct err *err;
    int64_t now_ns;  /* when the last operation was done, as far as times of files go */
    struct mode_of { /* directories get theirs in the end, or nothing could be put into some */
        char *path;
        unsigned mode;
        int64_t age_ns;
    } * modes;
    size_t modes_n;
};

static int fail(struct writing *w, const char *path, const char *what) {
    return err_set(w->err, -errno, "%s %s/%s", what, w->path, path);
}

static int write_run(int fd, const struct crash_run *r) {
    for (uint64_t done = 0; done < r->size;) {
        ssize_t n = pwrite(fd, r->bytes + done, r->size - done, (off_t)(r->at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        done += (uint64_t)n;
    }
    return 0;
}

/* Some jobs take the newest file for their last checkpoint. */
static int set_time(struct writing *w, const char *path, int64_t age_ns) {
    int64_t t_ns = w->now_ns - age_ns;
    struct timespec t = {t_ns / 1000000000, t_ns % 1000000000}, both[] = {t, t};
    return utimensat(w->fd, path, both, AT_SYMLINK_NOFOLLOW) < 0 ? fail(w, path, "set the time of")
                                                                 : 0;
}

static int write_file(struct writing *w, const struct crash_entry *e) {
    FILE_CLOSE int fd = openat(w->fd, e->path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail(w, e->path, "make");
    if (ftruncate(fd, (off_t)e->size) < 0)
        return fail(w, e->path, "set the size of");
    for (size_t i = 0; i < e->runs_n; i++)
        if (write_run(fd, &e->runs[i]) < 0)
            return fail(w, e->path, "write");
    return fchmod(fd, e->mode) < 0 ? fail(w, e->path, "set the mode of") : 0;
}

static int write_one(void *arg, const struct crash_entry *e) {
    struct writing *w = arg;
    if (e->same_as)
        return linkat(w->fd, e->same_as, w->fd, e->path, 0) < 0 ? fail(w, e->path, "link") : 0;
    int r = 0;
    if (e->kind == CRASH_FILE)
        r = write_file(w, e);
    else if (e->kind == CRASH_LINK)
        r = symlinkat(e->to, w->fd, e->path) < 0 ? fail(w, e->path, "make the link") : 0;
    if (e->kind != CRASH_DIRECTORY)
        return r ? r : set_time(w, e->path, e->age_ns);
    if (mkdirat(w->fd, e->path, 0700) < 0)
        return fail(w, e->path, "make the directory");
    mem_push(w->modes, w->modes_n) = (struct mode_of){mem_strdup(e->path), e->mode, e->age_ns};
    return 0;
}

static int finish_directories(struct writing *w) {
    int r = 0;
    while (w->modes_n) {
        struct mode_of m = w->modes[--w->modes_n];
        if (!r && fchmodat(w->fd, m.path, m.mode, 0) < 0)
            r = fail(w, m.path, "set the mode of");
        r = r ? r : set_time(w, m.path, m.age_ns);
        free(m.path);
    }
    free(w->modes);
    return r;
}

static int is_name(const struct dirent *e) {
    return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

static bool is_empty(int fd) {
    FILE_CLOSE_DIR DIR *d = fdopendir(dup(fd));
    const struct dirent *e;
    while (d && (e = readdir(d)))
        if (is_name(e))
            return false;
    return true;
}

int crash_folder_write(struct crash_states *s, size_t state, const char *path, struct err *err) {
    FILE_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct writing w = {.fd = fd, .path = path, .err = err, .now_ns = clock_realtime_ns()};
    if (fd < 0)
        return err_set(err, -errno, "%s", path);
    if (!is_empty(fd))
        return err_set(err, -ENOTEMPTY, "%s", path);
    int r = crash_states_walk(s, state, write_one, &w);
    int last = finish_directories(&w);
    return r ? r : last;
}

/* ---- hashing ---- */

struct reader_of_folder {
    const char *path;
    struct err *err;
    struct sha256 sha;
    struct seen_file {
        dev_t dev;
        ino_t ino;
        char *path;
    } * seen; /* files with several names */
    size_t seen_n;
    unsigned char *block;
};

static int refuse(struct reader_of_folder *x, const char *path) {
    return err_set(x->err, -errno, "read %s/%s", x->path, path);
}

static ssize_t read_block(int fd, unsigned char *into, off_t at) {
    size_t have = 0;
    while (have < CRASH_BLOCK_BYTES) {
        ssize_t n = pread(fd, into + have, CRASH_BLOCK_BYTES - have, at + (off_t)have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (!n)
            break;
        have += (size_t)n;
    }
    return (ssize_t)have;
}

static int read_file(struct reader_of_folder *x, int dir, const char *name,
                     const struct crash_entry *e, uint32_t digest[8]) {
    struct sha256 s;
    FILE_CLOSE int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return refuse(x, e->path);
    crash_contents_begin(&s, e->size);
    for (off_t at = 0; (uint64_t)at < e->size;) {
        off_t data = lseek(fd, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            break;
        at = data > at ? data / CRASH_BLOCK_BYTES * CRASH_BLOCK_BYTES : at;
        ssize_t n = read_block(fd, x->block, at);
        if (n < 0)
            return refuse(x, e->path);
        if (!n)
            break;
        crash_contents_block(&s, (uint64_t)(at / CRASH_BLOCK_BYTES), x->block, (size_t)n);
        at += n;
    }
    crash_contents_end(&s, digest);
    return 0;
}

static const char *same_as(struct reader_of_folder *x, const struct stat *st, const char *path) {
    for (size_t i = 0; i < x->seen_n; i++)
        if (x->seen[i].dev == st->st_dev && x->seen[i].ino == st->st_ino)
            return x->seen[i].path;
    mem_push(x->seen, x->seen_n) = (struct seen_file){st->st_dev, st->st_ino, mem_strdup(path)};
    return NULL;
}

static int read_directory(struct reader_of_folder *x, int fd, const char *path);

static int read_below(struct reader_of_folder *x, int dir, const char *name,
                      const struct crash_entry *e) {
    FILE_CLOSE int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return refuse(x, e->path);
    crash_image_hash_entry(&x->sha, e, NULL);
    return read_directory(x, fd, e->path);
}

static int read_one(struct reader_of_folder *x, int dir, const char *name, const char *path) {
    struct stat st;
    char to[4096];
    uint32_t digest[8];
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return refuse(x, path);
    struct crash_entry e = {.path = path, .mode = st.st_mode & 0777, .size = (uint64_t)st.st_size};
    if (S_ISDIR(st.st_mode)) {
        e.kind = CRASH_DIRECTORY;
        return read_below(x, dir, name, &e);
    }
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(dir, name, to, sizeof(to) - 1);
        if (n < 0)
            return refuse(x, path);
        to[n] = '\0';
        e.kind = CRASH_LINK;
        e.to = to;
    } else if (S_ISREG(st.st_mode)) {
        e.kind = CRASH_FILE;
        e.same_as = st.st_nlink > 1 ? same_as(x, &st, path) : NULL;
        int r = e.same_as ? 0 : read_file(x, dir, name, &e, digest);
        if (r)
            return r;
    } else {
        return err_say(x->err, -EINVAL, "%s/%s is neither a file nor a directory nor a link",
                       x->path, path);
    }
    crash_image_hash_entry(&x->sha, &e, digest);
    return 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int read_directory(struct reader_of_folder *x, int fd, const char *path) {
    struct dirent **v = NULL;
    int n = scandirat(fd, ".", &v, is_name, by_bytes), r = 0;
    if (n < 0)
        return refuse(x, path);
    for (int i = 0; i < n; i++) {
        char *below = *path ? mem_printf("%s/%s", path, v[i]->d_name) : mem_strdup(v[i]->d_name);
        r = r ? r : read_one(x, fd, v[i]->d_name, below);
        free(below);
        free(v[i]);
    }
    free(v);
    return r;
}

int crash_folder_hash(const char *path, char ret[65], struct err *err) {
    FILE_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, -errno, "%s", path);
    struct reader_of_folder x = {
        .path = path, .err = err, .block = mem_alloc(CRASH_BLOCK_BYTES, 1)};
    sha256_init(&x.sha);
    int r = read_directory(&x, fd, "");
    if (!r)
        sha256_hex(&x.sha, ret);
    for (size_t i = 0; i < x.seen_n; i++)
        free(x.seen[i].path);
    free(x.seen);
    free(x.block);
    return r;
}
