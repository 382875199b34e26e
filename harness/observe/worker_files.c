#include "harness/observe/worker_files.h"

#include "base/buf.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENVIRON_MAX = 2 << 20, MARKED_MAX = 64 << 10 };

/* What is no plain file is not opened: a pipe would get a reader more. */
static void open_stream(struct worker_file *f, pid_t pid, int number) {
    char link[64];
    struct stat st;
    snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)pid, number);
    ssize_t n = readlink(link, f->path, sizeof(f->path) - 1);
    if (n <= 0 || stat(link, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    f->path[n] = '\0';
    f->fd = open(link, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

/* The value, or NULL; it lies in environ. */
static const char *value_in(const struct buf *environ, const char *name) {
    for (size_t at = 0; at < environ->len; at += strlen(environ->data + at) + 1)
        if (str_starts(environ->data + at, name))
            return environ->data + at + strlen(name);
    return NULL;
}

/* Below the root of the worker: its node may have one of its own. */
static void open_error_file(struct worker_file *f, pid_t pid) {
    BUF_FINI struct buf environ = {0};
    char path[64], dir[PATH_MAX];
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    if (file_read(path, ENVIRON_MAX, &environ, NULL) < 0)
        return;
    buf_str(&environ);
    const char *value = value_in(&environ, "TORCHELASTIC_ERROR_FILE=");
    const char *slash = value ? strrchr(value, '/') : NULL;
    if (!slash || *value != '/' || strlen(value) >= sizeof(f->path))
        return;
    str_copy(f->path, sizeof(f->path), value);
    if (snprintf(dir, sizeof(dir), "/proc/%d/root%.*s/", (int)pid, (int)(slash - value), value) <
        (int)sizeof(dir))
        f->dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool is_same_file(int a, int b) {
    struct stat x, y;
    return a >= 0 && b >= 0 && fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

void worker_files_open(struct worker_file v[WORKER_FILES_N], pid_t pid) {
    static const char *const names[WORKER_FILES_N] = {"stdout", "stderr", "error-file"};
    for (int i = 0; i < WORKER_FILES_N; i++)
        v[i] = (struct worker_file){.what = names[i], .fd = -1, .dir = -1, .bytes = -1};
    open_stream(&v[0], pid, STDOUT_FILENO);
    open_stream(&v[1], pid, STDERR_FILENO);
    if (is_same_file(v[0].fd, v[1].fd))
        file_close(&v[1].fd);
    open_error_file(&v[2], pid);
}

void worker_files_close(struct worker_file v[WORKER_FILES_N]) {
    for (int i = 0; i < WORKER_FILES_N; i++) {
        file_close(&v[i].fd);
        file_close(&v[i].dir);
    }
}

bool worker_files_any(const struct worker_file v[WORKER_FILES_N]) {
    bool any = false;
    for (int i = 0; i < WORKER_FILES_N; i++)
        any |= v[i].fd >= 0 || v[i].dir >= 0;
    return any;
}

/* The worker has made it meanwhile, if ever. */
static void find_error_file(struct worker_file *f) {
    if (f->dir >= 0 && f->fd < 0)
        f->fd = openat(f->dir, strrchr(f->path, '/') + 1,
                       O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
}

static bool mark(const struct worker_file *f, char ret[13]) {
    char bytes[4096], digest[65];
    int64_t left = f->bytes < MARKED_MAX ? f->bytes : MARKED_MAX, at = 0;
    struct sha256 s;
    sha256_init(&s);
    while (at < left) {
        size_t want = left - at < (int64_t)sizeof(bytes) ? (size_t)(left - at) : sizeof(bytes);
        ssize_t n = pread(f->fd, bytes, want, at);
        if (n < 0)
            return false;
        if (n == 0)
            break;
        sha256_update(&s, bytes, (size_t)n);
        at += n;
    }
    sha256_hex(&s, digest);
    str_copy(ret, 13, digest);
    return true;
}

bool worker_file_look(struct worker_file *f, struct worker_file_look *ret) {
    struct stat st;
    find_error_file(f);
    if (f->fd < 0 || fstat(f->fd, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    if (f->bytes < 0)
        f->bytes = st.st_size;
    *ret = (struct worker_file_look){.bytes = st.st_size, .linked = st.st_nlink > 0};
    return mark(f, ret->mark);
}
