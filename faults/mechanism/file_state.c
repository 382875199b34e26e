#include "faults/mechanism/file_state.h"

#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 8, CHUNK = 1 << 18 };

static void read_range(int fd, int64_t from, int64_t to, struct sha256 *sum) {
    char *chunk = mem_array(char, CHUNK);
    for (ssize_t n = 1; from < to && n > 0; from += n > 0 ? n : 0) {
        size_t want = (size_t)(to - from < CHUNK ? to - from : CHUNK);
        n = pread(fd, chunk, want, from);
        sha256_update(sum, chunk, n > 0 ? (size_t)n : 0);
    }
    free(chunk);
}

static void read_file(int dir, const char *name, int64_t bytes, int64_t at, struct sha256 *sum) {
    FILE_CLOSE int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const int64_t part = FILE_STATE_PART;
    if (fd < 0)
        return;
    if (bytes <= FILE_STATE_WHOLE) {
        read_range(fd, 0, bytes, sum);
        return;
    }
    read_range(fd, 0, part, sum);
    read_range(fd, at < part ? 0 : at - part, at + part, sum);
    read_range(fd, bytes - part, bytes, sum);
}

static void read_name(int dir, const char *name, int64_t at, int depth, struct file_state *ret);

/* Each name in it with what goes by it. */
static void read_directory(int parent, const char *name, int depth, struct file_state *ret,
                           struct sha256 *sum) {
    struct folder f = {openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                       mem_strdup(name)};
    TEXTS_FINI struct texts names = {0};
    if (f.fd >= 0 && depth < DEPTH_MAX)
        folder_list(&f, ".", NULL, &names, NULL);
    for (size_t i = 0; i < names.n; i++) {
        struct file_state one;
        if (str_eq(names.v[i], ".") || str_eq(names.v[i], ".."))
            continue;
        read_name(f.fd, names.v[i], 0, depth + 1, &one);
        sha256_update(sum, names.v[i], strlen(names.v[i]) + 1);
        sha256_update(sum, &one.kind, 1);
        sha256_update(sum, one.sum, sizeof(one.sum));
        ret->bytes += one.bytes;
    }
    folder_close(&f);
}

static void read_name(int dir, const char *name, int64_t at, int depth, struct file_state *ret) {
    struct sha256 sum;
    struct stat st;
    char link[PATH_MAX];
    *ret = (struct file_state){0};
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    sha256_init(&sum);
    ret->inode = (int64_t)st.st_ino;
    ret->kind = S_ISREG(st.st_mode)   ? 'f'
                : S_ISDIR(st.st_mode) ? 'd'
                : S_ISLNK(st.st_mode) ? 'l'
                                      : 'o';
    if (ret->kind == 'f') {
        ret->bytes = st.st_size;
        read_file(dir, name, st.st_size, at, &sum);
    } else if (ret->kind == 'd') {
        read_directory(dir, name, depth, ret, &sum);
    } else if (ret->kind == 'l') {
        ssize_t n = readlinkat(dir, name, link, sizeof(link));
        sha256_update(&sum, link, n > 0 ? (size_t)n : 0);
    }
    sha256_hex(&sum, ret->sum);
}

void file_state_read(const struct folder *in, const char *path, int64_t at,
                     struct file_state *ret) {
    const char *name;
    struct folder parent;
    *ret = (struct file_state){0};
    if (folder_enter_parent(&parent, in, path, &name, NULL) != 0)
        return;
    read_name(parent.fd, name, at, 0, ret);
    folder_close(&parent);
}

bool file_state_same(const struct file_state *a, const struct file_state *b) {
    bool long_one = a->bytes > FILE_STATE_WHOLE; /* of which not all was read */
    return a->kind == b->kind && a->bytes == b->bytes && str_eq(a->sum, b->sum) &&
           (!long_one || a->inode == b->inode);
}

void file_state_text(const struct file_state *s, char *ret, size_t size) {
    const char *what = s->kind == 'f' ? "a file" : s->kind == 'd' ? "a directory" : "something";
    if (!s->kind)
        snprintf(ret, size, "nothing");
    else if (s->kind == 'l')
        snprintf(ret, size, "a link, sha256 %.12s", s->sum);
    else
        snprintf(ret, size, "%s of %lld bytes, sha256 %.12s", what, (long long)s->bytes, s->sum);
}
