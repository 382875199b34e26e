#include "faults/mechanism/disk_call.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* What names its file: a descriptor, a path, a path from a directory; an open says more. */
enum names { BY_FD, BY_FD_2, BY_PATH, BY_PATH_1, AT_01, AT_12, BY_PATHS, AT_0123, OPENS, OPENS_AT };

static const struct {
    int nr;
    unsigned does;
    enum names names;
    int bytes; /* which argument says how many; -1: those of an array of parts; 0: none */
} calls[] = {
    {SYS_openat, DISK_DOES_OPEN, OPENS_AT, 0},
    {SYS_openat2, DISK_DOES_OPEN, OPENS_AT, 0},
    {SYS_read, DISK_DOES_READ, BY_FD, 0},
    {SYS_pread64, DISK_DOES_READ, BY_FD, 0},
    {SYS_readv, DISK_DOES_READ, BY_FD, 0},
    {SYS_preadv, DISK_DOES_READ, BY_FD, 0},
    {SYS_preadv2, DISK_DOES_READ, BY_FD, 0},
    {SYS_write, DISK_DOES_WRITE, BY_FD, 2},
    {SYS_pwrite64, DISK_DOES_WRITE, BY_FD, 2},
    {SYS_writev, DISK_DOES_WRITE, BY_FD, -1},
    {SYS_pwritev, DISK_DOES_WRITE, BY_FD, -1},
    {SYS_pwritev2, DISK_DOES_WRITE, BY_FD, -1},
    {SYS_sendfile, DISK_DOES_WRITE, BY_FD, 3},
    {SYS_copy_file_range, DISK_DOES_WRITE, BY_FD_2, 4},
    {SYS_fsync, DISK_DOES_SYNC, BY_FD, 0},
    {SYS_fdatasync, DISK_DOES_SYNC, BY_FD, 0},
    {SYS_syncfs, DISK_DOES_SYNC, BY_FD, 0},
    {SYS_sync_file_range, DISK_DOES_SYNC, BY_FD, 0},
    {SYS_renameat2, DISK_DOES_RENAME, AT_0123, 0},
    {SYS_unlinkat, DISK_DOES_UNLINK, AT_01, 0},
    {SYS_mkdirat, DISK_DOES_MKDIR, AT_01, 0},
    {SYS_linkat, DISK_DOES_MKDIR, AT_0123, 0},
    {SYS_symlinkat, DISK_DOES_MKDIR, AT_12, 0},
    {SYS_truncate, DISK_DOES_TRUNCATE, BY_PATH, 0},
    {SYS_ftruncate, DISK_DOES_TRUNCATE, BY_FD, 0},
    {SYS_fallocate, DISK_DOES_TRUNCATE, BY_FD, 0},
    {SYS_fchmod, DISK_DOES_ATTRIBUTES, BY_FD, 0},
    {SYS_fchmodat, DISK_DOES_ATTRIBUTES, AT_01, 0},
    {SYS_fchown, DISK_DOES_ATTRIBUTES, BY_FD, 0},
    {SYS_fchownat, DISK_DOES_ATTRIBUTES, AT_01, 0},
    {SYS_utimensat, DISK_DOES_ATTRIBUTES, AT_01, 0},
    {SYS_setxattr, DISK_DOES_ATTRIBUTES, BY_PATH, 0},
    {SYS_lsetxattr, DISK_DOES_ATTRIBUTES, BY_PATH, 0},
    {SYS_fsetxattr, DISK_DOES_ATTRIBUTES, BY_FD, 0},
    {SYS_removexattr, DISK_DOES_ATTRIBUTES, BY_PATH, 0},
    {SYS_lremovexattr, DISK_DOES_ATTRIBUTES, BY_PATH, 0},
    {SYS_fremovexattr, DISK_DOES_ATTRIBUTES, BY_FD, 0},
#ifdef SYS_renameat
    {SYS_renameat, DISK_DOES_RENAME, AT_0123, 0},
#endif
#ifdef SYS_open /* calls that newer machines never had */
    {SYS_open, DISK_DOES_OPEN, OPENS, 0},
    {SYS_creat, DISK_DOES_OPEN, OPENS, 0},
    {SYS_rename, DISK_DOES_RENAME, BY_PATHS, 0},
    {SYS_unlink, DISK_DOES_UNLINK, BY_PATH, 0},
    {SYS_rmdir, DISK_DOES_UNLINK, BY_PATH, 0},
    {SYS_mkdir, DISK_DOES_MKDIR, BY_PATH, 0},
    {SYS_link, DISK_DOES_MKDIR, BY_PATHS, 0},
    {SYS_symlink, DISK_DOES_MKDIR, BY_PATH_1, 0},
    {SYS_chmod, DISK_DOES_ATTRIBUTES, BY_PATH, 0},
    {SYS_chown, DISK_DOES_ATTRIBUTES, BY_PATH, 0},
    {SYS_lchown, DISK_DOES_ATTRIBUTES, BY_PATH, 0},
#endif
};
enum { CALLS = sizeof(calls) / sizeof(*calls) };

static void add(struct call_watch *w, int nr) {
    for (size_t i = 0; i < w->numbers_n; i++)
        if (w->numbers[i] == nr)
            return;
    if (w->numbers_n < CALL_NUMBERS_MAX)
        w->numbers[w->numbers_n++] = nr;
}

void disk_call_watch(struct call_watch *w, unsigned does) {
    if (does & DISK_DOES_READ_OPEN)
        does |= DISK_DOES_OPEN;
    for (size_t i = 0; i < CALLS; i++)
        if (calls[i].does & does)
            add(w, calls[i].nr);
}

static int64_t sum_of_parts(const struct watched_call *c) {
    enum { PARTS_MAX = 64 };
    struct iovec parts[PARTS_MAX];
    size_t n = c->args[2] < PARTS_MAX ? (size_t)c->args[2] : PARTS_MAX;
    struct iovec own = {parts, n * sizeof(*parts)},
                 its = {(void *)(uintptr_t)c->args[1], n * sizeof(*parts)};
    int64_t sum = 0;
    if (process_vm_readv(c->thread, &own, 1, &its, 1, 0) != (ssize_t)own.iov_len)
        return 0;
    for (size_t i = 0; i < n; i++)
        sum += (int64_t)parts[i].iov_len;
    return sum;
}

static void read_paths(const struct watched_call *c, enum names names, struct disk_call_paths *p) {
    const uint64_t *a = c->args;
    p->from[0] = p->to[0] = '\0';
    if (names == BY_FD || names == BY_FD_2)
        call_file_of(c, (int)a[names == BY_FD ? 0 : 2], p->from);
    else if (names == AT_01 || names == OPENS_AT || names == AT_0123)
        call_file_at(c, (int)a[0], a[1], p->from);
    else if (names == AT_12)
        call_file_at(c, (int)a[1], a[2], p->from);
    else
        call_file_at(c, AT_FDCWD, a[names == BY_PATH_1 ? 1 : 0], p->from);
    if (names == AT_0123)
        call_file_at(c, (int)a[2], a[3], p->to);
    else if (names == BY_PATHS)
        call_file_at(c, AT_FDCWD, a[1], p->to);
}

bool disk_call_read(const struct watched_call *c, struct disk_call_paths *paths,
                    struct disk_request *ret) {
    size_t i = 0;
    while (i < CALLS && calls[i].nr != c->nr)
        i++;
    if (i == CALLS)
        return false;
    read_paths(c, calls[i].names, paths);
    unsigned does = calls[i].does;
    bool opens = calls[i].names == OPENS || calls[i].names == OPENS_AT;
    if (opens && !call_file_opens_to_write(c, c->args[calls[i].names == OPENS ? 1 : 2]))
        does = DISK_DOES_READ_OPEN;
    *ret = (struct disk_request){.does = does, .path = paths->from, .to = paths->to};
    if (calls[i].bytes)
        ret->bytes = calls[i].bytes < 0 ? sum_of_parts(c) : (int64_t)c->args[calls[i].bytes];
    ret->grows = ret->bytes;
    return *paths->from || *paths->to;
}
