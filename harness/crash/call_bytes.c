/* Calls on open files: writes, sizes and syncs, done with a copy of the caller's descriptor. */
#include "base/mem.h"
#include "base/sys/file.h"
#include "harness/crash/call_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* A write by the caller may be short: nobody is promised more than this at once. */
enum { WRITE_MAX = 1 << 30, PIECE = 1 << 20, VECTORS_MAX = 1024 };

struct open_file {
    int fd; /* -1: not in the directory */
    bool named, directory;
    uint64_t file;
    char path[PATH_MAX];
};
static void open_file_close(struct open_file *f) {
    file_close(&f->fd);
}
#define OPEN_FILE_CLOSE __attribute__((cleanup(open_file_close)))

static bool find(const struct call_scene *s, uint64_t fd, struct open_file *ret) {
    struct stat st;
    ret->fd = call_scene_file(s, (int)fd, ret->path, &st);
    if (ret->fd < 0)
        return false;
    ret->named = st.st_nlink > 0;
    ret->directory = S_ISDIR(st.st_mode);
    ret->file = ret->named ? call_scene_number(s, &st) : 0;
    return ret->directory || S_ISREG(st.st_mode);
}

static void tell(const struct call_scene *s, const struct open_file *f, struct disk_operation o) {
    o.path = f->path;
    o.file = f->file;
    o.directory = f->directory && (o.deed == DISK_SYNC);
    if (f->named)
        call_scene_tell(s, o);
}

/* ---- writes ---- */

/* For so many bytes: in the record, where they need not be copied to. */
static unsigned char *room(const struct call_scene *s, size_t size) {
    unsigned char *in_record = disk_recorder_room(s->r->to, size);
    struct buf *b = &s->r->bytes;
    if (in_record)
        return in_record;
    if (b->cap < size + 1) {
        buf_fini(b);
        *b = (struct buf){.data = mem_alloc(size + 1, 1), .cap = size + 1};
    }
    return (unsigned char *)b->data;
}

/* All that it means to write, as far as it is promised. */
static uint64_t asked_for(const struct iovec *v, size_t n) {
    uint64_t all = 0;
    for (size_t i = 0; i < n; i++)
        all += v[i].iov_len;
    return all < WRITE_MAX ? all : WRITE_MAX;
}

/* Of what it means to write `left` bytes, from `from` on: up to PIECE. Their number, or a -errno. */
static ssize_t gather(const struct call_scene *s, const struct iovec *v, size_t n, uint64_t from,
                      uint64_t left, unsigned char **ret) {
    uint64_t size = left < PIECE ? left : PIECE;
    *ret = room(s, size);
    size_t at = 0;
    for (size_t i = 0; i < n && at < size; i++) {
        uint64_t skip = from < v[i].iov_len ? from : v[i].iov_len;
        size_t len = v[i].iov_len - skip < size - at ? v[i].iov_len - skip : size - at;
        from -= skip;
        if (len && !call_scene_read(s, (uint64_t)(uintptr_t)v[i].iov_base + skip, *ret + at, len))
            return at ? (ssize_t)at : -EFAULT;
        at += len;
    }
    return (ssize_t)at;
}

/* at -1: where the file's own position is. */
static ssize_t write_piece(const struct call_scene *s, const struct open_file *f,
                           const unsigned char *bytes, size_t size, int64_t at) {
    struct stat st = {0};
    ssize_t done = at < 0 ? write(f->fd, bytes, size) : pwrite(f->fd, bytes, size, at);
    if (done < 0)
        return -errno;
    if (at < 0)
        at = lseek(f->fd, 0, SEEK_CUR) - done;
    else if (fcntl(f->fd, F_GETFL) & O_APPEND && fstat(f->fd, &st) == 0)
        at = st.st_size - done; /* there it goes to the end whatever was said */
    if (done > 0)
        tell(s, f,
             (struct disk_operation){.deed = DISK_WRITE,
                                     .offset = (uint64_t)at,
                                     .size = (uint64_t)done,
                                     .bytes = bytes});
    return done;
}

/* Piece by piece, as through a FUSE disk: each is one operation of the record. */
static int64_t write_pieces(const struct call_scene *s, const struct iovec *v, size_t n,
                            int64_t at) {
    OPEN_FILE_CLOSE struct open_file f = {.fd = -1};
    unsigned char *bytes;
    uint64_t all = 0, asked = asked_for(v, n);
    ssize_t size, done;
    if (!find(s, s->c->args[0], &f) || f.directory)
        return CALL_GOES_ON;
    do {
        size = gather(s, v, n, all, asked - all, &bytes);
        done = size < 0 ? size
                        : write_piece(s, &f, bytes, (size_t)size, at < 0 ? at : at + (int64_t)all);
        all += done > 0 ? (uint64_t)done : 0;
    } while (done == PIECE && all < asked);
    return all || done >= 0 ? (int64_t)all : done;
}

int64_t call_does_write(const struct call_scene *s) {
    struct iovec v = {(void *)(uintptr_t)s->c->args[1], (size_t)s->c->args[2]};
    return write_pieces(s, &v, 1, -1);
}

int64_t call_does_pwrite(const struct call_scene *s) {
    struct iovec v = {(void *)(uintptr_t)s->c->args[1], (size_t)s->c->args[2]};
    return (int64_t)s->c->args[3] < 0 ? -EINVAL : write_pieces(s, &v, 1, (int64_t)s->c->args[3]);
}

static int64_t write_vector(const struct call_scene *s, int64_t at) {
    size_t n = (size_t)s->c->args[2];
    if (n == 0 || n > VECTORS_MAX)
        return CALL_GOES_ON;
    struct iovec *v = mem_array(struct iovec, n);
    int64_t r = call_scene_read(s, s->c->args[1], v, n * sizeof(*v)) ? write_pieces(s, v, n, at)
                                                                     : CALL_GOES_ON;
    free(v);
    return r;
}

int64_t call_does_writev(const struct call_scene *s) {
    return write_vector(s, -1);
}

int64_t call_does_pwritev(const struct call_scene *s) {
    return (int64_t)s->c->args[3] < 0 ? -EINVAL : write_vector(s, (int64_t)s->c->args[3]);
}

int64_t call_does_pwritev2(const struct call_scene *s) {
    return (int64_t)s->c->args[3] < -1 ? -EINVAL : write_vector(s, (int64_t)s->c->args[3]);
}

/* ---- sizes ---- */

int64_t call_does_ftruncate(const struct call_scene *s) {
    OPEN_FILE_CLOSE struct open_file f = {.fd = -1};
    if (!find(s, s->c->args[0], &f) || f.directory)
        return CALL_GOES_ON;
    if (ftruncate(f.fd, (off_t)s->c->args[1]) != 0)
        return -errno;
    tell(s, &f, (struct disk_operation){.deed = DISK_TRUNCATE, .offset = s->c->args[1]});
    return 0;
}

int64_t call_does_allocate(const struct call_scene *s) {
    OPEN_FILE_CLOSE struct open_file f = {.fd = -1};
    const uint64_t *a = s->c->args;
    if (!find(s, a[0], &f) || f.directory)
        return CALL_GOES_ON;
    if (fallocate(f.fd, (int)a[1], (off_t)a[2], (off_t)a[3]) != 0)
        return -errno;
    tell(s, &f,
         (struct disk_operation){
             .deed = DISK_ALLOCATE, .mode = (unsigned)a[1], .offset = a[2], .size = a[3]});
    return 0;
}

/* ---- syncs ---- */

static int64_t sync_file(const struct call_scene *s, enum disk_deed deed) {
    OPEN_FILE_CLOSE struct open_file f = {.fd = -1};
    if (!find(s, s->c->args[0], &f))
        return CALL_GOES_ON;
    if ((deed == DISK_SYNC_DATA ? fdatasync(f.fd) : fsync(f.fd)) != 0)
        return -errno;
    tell(s, &f, (struct disk_operation){.deed = f.directory ? DISK_SYNC : deed});
    return 0;
}

int64_t call_does_fsync(const struct call_scene *s) {
    return sync_file(s, DISK_SYNC);
}

int64_t call_does_fdatasync(const struct call_scene *s) {
    return sync_file(s, DISK_SYNC_DATA);
}

/* It promises nothing: neither sizes nor what a disk holds back (its own manual). */
int64_t call_does_sync_range(const struct call_scene *s) {
    OPEN_FILE_CLOSE struct open_file f = {.fd = -1};
    const uint64_t *a = s->c->args;
    if (!find(s, a[0], &f) || f.directory)
        return CALL_GOES_ON;
    if (sync_file_range(f.fd, (off_t)a[1], (off_t)a[2], (unsigned)a[3]) != 0)
        return -errno;
    tell(s, &f, (struct disk_operation){.deed = DISK_SYNC_RANGE, .offset = a[1], .size = a[2]});
    return 0;
}

int64_t call_does_sync(const struct call_scene *s) {
    sync();
    call_scene_tell(s, (struct disk_operation){.deed = DISK_SYNC_ALL, .path = ""});
    return 0;
}

int64_t call_does_syncfs(const struct call_scene *s) {
    OPEN_FILE_CLOSE struct open_file f = {.fd = -1};
    if (!find(s, s->c->args[0], &f))
        return CALL_GOES_ON;
    if (syncfs(f.fd) != 0)
        return -errno;
    call_scene_tell(s, (struct disk_operation){.deed = DISK_SYNC_ALL, .path = ""});
    return 0;
}

/* ---- mappings ---- */

/* What of a file is mapped at [at, end), of the first mapping there: its line of /proc/PID/maps. */
static bool find_mapping(const struct call_scene *s, uint64_t at, uint64_t end,
                         uint64_t *ret_offset, uint64_t *ret_size, char path[PATH_MAX]) {
    char name[64];
    BUF_FINI struct buf maps = {0};
    snprintf(name, sizeof(name), "/proc/%d/maps", (int)s->c->pid);
    if (file_read(name, 64 << 20, &maps, NULL) != 0)
        return false;
    char *rest = maps.data, *line;
    while ((line = strsep(&rest, "\n"))) {
        unsigned long long from, to, offset;
        int slash = 0;
        char shared;
        if (sscanf(line, "%llx-%llx %*c%*c%*c%c %llx %*s %*s %n", &from, &to, &shared, &offset,
                   &slash) < 4 ||
            shared != 's' || line[slash] != '/' || at < from || at >= to)
            continue;
        size_t n = strlen(s->r->base);
        if (strncmp(line + slash, s->r->base, n) != 0 || line[slash + (int)n] != '/')
            return false;
        snprintf(path, PATH_MAX, "%s", line + slash + n + 1);
        *ret_offset = offset + (at - from);
        *ret_size = (end < to ? end : to) - at;
        return true;
    }
    return false;
}

/* The pages as they are now, then that they are on the disk. */
int64_t call_does_msync(const struct call_scene *s) {
    struct open_file f = {.named = true};
    struct buf *b = &s->r->bytes;
    uint64_t offset, size;
    struct stat st;
    if (!find_mapping(s, s->c->args[0], s->c->args[0] + s->c->args[1], &offset, &size, f.path))
        return CALL_GOES_ON;
    FILE_CLOSE int fd = openat(s->r->dir, f.path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || offset >= (uint64_t)st.st_size)
        return CALL_GOES_ON;
    size = size < (uint64_t)st.st_size - offset ? size : (uint64_t)st.st_size - offset;
    buf_fini(b);
    *b = (struct buf){.data = mem_alloc(size + 1, 1), .cap = size + 1, .len = size};
    if (pread(fd, b->data, size, (off_t)offset) != (ssize_t)size)
        return CALL_GOES_ON;
    f.file = call_scene_number(s, &st);
    tell(s, &f,
         (struct disk_operation){.deed = DISK_WRITE,
                                 .offset = offset,
                                 .size = size,
                                 .bytes = (const unsigned char *)b->data});
    if (s->c->args[2] & MS_SYNC)
        tell(s, &f, (struct disk_operation){.deed = DISK_SYNC});
    return CALL_GOES_ON;
}

/* ---- what there is a second way for ---- */

static int64_t refuse(const struct call_scene *s, uint64_t fd, int code) {
    OPEN_FILE_CLOSE struct open_file f = {.fd = -1};
    return find(s, fd, &f) ? code : CALL_GOES_ON;
}

int64_t call_does_copy_range(const struct call_scene *s) {
    return refuse(s, s->c->args[2], -EOPNOTSUPP);
}

int64_t call_does_sendfile(const struct call_scene *s) {
    return refuse(s, s->c->args[0], -EINVAL);
}

int64_t call_does_splice(const struct call_scene *s) {
    return refuse(s, s->c->args[2], -EINVAL);
}

int64_t call_does_ring(const struct call_scene *s) {
    s->r->seen.ring++;
    return -ENOSYS;
}
