/* The body of test_call_record: spawn_calls DIR. A child changes DIR in every way that there is a call for, while it is
 * recorded. Prints the record, a line for each operation, or "skip" with the reason. */
#include "base/arena.h"
#include "base/sys/file.h"
#include "harness/crash/call_record.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: %s (%s)\n", __LINE__, #condition, strerror(errno));                   \
            fflush(stdout);                                                                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void write_all_ways(void) {
    struct iovec v[] = {{(char[]){'i', 'j'}, 2}, {(char[]){'k'}, 1}};
    int fd = open("d/file", O_RDWR | O_CREAT | O_TRUNC, 0640), end, other;
    MUST(fd >= 0 && write(fd, "abc", 3) == 3 && pwrite(fd, "de", 2, 10) == 2);
    MUST(writev(fd, v, 2) == 3 && pwritev(fd, v, 2, 20) == 3);
    end = open("d/file", O_WRONLY | O_APPEND);
    MUST(end >= 0 && write(end, "z", 1) == 1 && close(end) == 0);
    other = dup(fd);
    MUST(other >= 0 && write(other, "q", 1) == 1);
    MUST(ftruncate(fd, 8) == 0 && truncate("d/file", 4) == 0);
    MUST(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 100) == 0 || errno == EOPNOTSUPP);
    MUST(sync_file_range(fd, 0, 4, SYNC_FILE_RANGE_WRITE) == 0);
    MUST(fdatasync(fd) == 0 && fsync(other) == 0);
    MUST(close(fd) == 0 && close(other) == 0);
}

/* More than one piece of the record, and from two places. */
static void write_much(void) {
    size_t size = (1 << 20) + 7;
    char *bytes = malloc(size);
    int fd = open("much", O_WRONLY | O_CREAT, 0600);
    MUST(fd >= 0 && bytes);
    memset(bytes, '.', size);
    memcpy(bytes + (1 << 20), "xyz", 3);
    struct iovec v[] = {{bytes, 3}, {bytes, size}};
    MUST(pwritev(fd, v, 2, 5) == (ssize_t)size + 3);
    MUST(unlink("much") == 0 && close(fd) == 0);
    free(bytes);
}

static void change_modes(void) {
    int fd = open("d/file", O_RDONLY), dir = open("d", O_RDONLY | O_DIRECTORY);
    MUST(fd >= 0 && fchmod(fd, 0700) == 0 && chmod("d/file", 0) == 0);
    MUST(fchmodat(dir, "file", 0640, 0) == 0 && fchmod(dir, 0750) == 0);
    MUST(chmod("nowhere", 0600) < 0 && errno == ENOENT);
    MUST(close(fd) == 0 && close(dir) == 0);
}

static void map(void) {
    int fd = open("mapped", O_RDWR | O_CREAT, 0600);
    MUST(fd >= 0 && ftruncate(fd, 4096) == 0);
    char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(at != MAP_FAILED);
    memcpy(at, "mapped", 6);
    MUST(msync(at, 4096, MS_SYNC) == 0);
    MUST(close(fd) == 0);
}

static void name_all_ways(void) {
    int dir = open("d", O_RDONLY | O_DIRECTORY), here = open(".", O_RDONLY | O_DIRECTORY);
    MUST(rename("d/file", "a") == 0 && link("a", "b") == 0 && symlink("a", "l") == 0);
    MUST(renameat2(AT_FDCWD, "a", AT_FDCWD, "l", RENAME_EXCHANGE) == 0);
    MUST(renameat(here, "b", dir, "c") == 0 && unlinkat(dir, "c", 0) == 0);
    MUST(mkdirat(dir, "e", 0700) == 0 && unlinkat(dir, "e", AT_REMOVEDIR) == 0);
    MUST(fsync(dir) == 0 && fsync(here) == 0);
}

static void make(int dir, const char *name) {
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    MUST(fd >= 0 && close(fd) == 0);
}

/* One way that leads elsewhere now, and one directory that has another name. */
static void move_folders(void) {
    MUST(mkdir("x", 0700) == 0 && mkdir("y", 0700) == 0 && symlink("x", "here") == 0);
    make(AT_FDCWD, "here/f");
    MUST(unlink("here") == 0 && symlink("y", "here") == 0);
    make(AT_FDCWD, "here/g");
    int dir = open("x", O_RDONLY | O_DIRECTORY), fd = openat(dir, "f", O_WRONLY);
    MUST(dir >= 0 && fd >= 0 && fsync(dir) == 0 && rename("x", "z") == 0);
    MUST(write(fd, "w", 1) == 1 && fsync(dir) == 0 && close(fd) == 0);
    make(dir, "h");
    MUST(chdir("y") == 0);
    make(AT_FDCWD, "k");
    MUST(chdir("..") == 0 && close(dir) == 0);
    make(AT_FDCWD, "k");
}

/* More files than paths are kept of, below a directory that gets another name; one takes the name of another. */
static void follow_names(void) {
    enum { FILES = 9 };
    int fds[FILES];
    MUST(mkdir("m", 0700) == 0 && mkdir("m/n", 0700) == 0 && mkdir("mm", 0700) == 0);
    for (int i = 0; i < FILES; i++) {
        char name[] = {'m', '/', 'n', '/', (char)('0' + i), '\0'};
        fds[i] = open(name, O_WRONLY | O_CREAT, 0600);
        MUST(fds[i] >= 0);
    }
    int beside = open("mm/x", O_WRONLY | O_CREAT, 0600);
    MUST(beside >= 0 && rename("m", "o") == 0);
    MUST(write(fds[0], "0", 1) == 1 && write(fds[8], "8", 1) == 1 && write(beside, "x", 1) == 1);
    MUST(rename("o/n/8", "o/n/7") == 0);
    MUST(write(fds[8], "8", 1) == 1 && write(fds[7], "7", 1) == 1);
    for (int i = 0; i < FILES; i++)
        MUST(close(fds[i]) == 0);
    MUST(close(beside) == 0);
}

/* What fails, and what is elsewhere, changes nothing; what could not be seen is refused. */
static void what_is_not_recorded(void) {
    int fd = open("/dev/null", O_WRONLY), in = open("l", O_RDONLY), to;
    MUST(fd >= 0 && write(fd, "x", 1) == 1);
    MUST(mkdir("d", 0755) < 0 && errno == EEXIST);
    MUST(unlink("nowhere") < 0 && errno == ENOENT);
    to = open("last", O_WRONLY | O_CREAT | O_EXCL, 0600);
    MUST(to >= 0 && sendfile(to, in, NULL, 1) < 0);
}

static void change(const char *dir) {
    MUST(chdir(dir) == 0);
    umask(022);
    MUST(mkdir("d", 0777) == 0);
    write_all_ways();
    write_much();
    change_modes();
    map();
    name_all_ways();
    move_folders();
    follow_names();
    what_is_not_recorded();
    _exit(0);
}

static void show(const char *path) {
    struct arena arena = {0};
    struct disk_record r = {0};
    struct err err = {0};
    if (disk_record_load(path, &arena, &r, &err) != 0)
        printf("%s\n", err.msg);
    for (size_t i = 0; i < r.n; i++) {
        const struct disk_operation *o = &r.v[i];
        if (o->deed == DISK_ALLOCATE) /* not on every file system */
            continue;
        printf("%s %s", disk_deed_names[o->deed], *o->path ? o->path : ".");
        if (*o->to)
            printf(" %s", o->to);
        if (o->deed == DISK_CREATE || o->deed == DISK_MKDIR || o->deed == DISK_MODE)
            printf(" %o", o->mode);
        if (o->deed == DISK_TRUNCATE)
            printf(" %d", (int)o->offset);
        if (o->deed == DISK_WRITE)
            printf(" %d+%d %.*s", (int)o->offset, (int)o->size, o->size < 6 ? (int)o->size : 6,
                   (const char *)o->bytes);
        printf("\n");
    }
    arena_fini(&arena);
}

int main(int argc, char **argv) {
    int ends[2], watch, status = 0;
    char record[4096];
    struct disk_recorder *to;
    struct err err = {0};
    MUST(argc == 2 && mkdir(argv[1], 0755) == 0);
    snprintf(record, sizeof(record), "%s.record", argv[1]);
    MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
    const struct call_watch *w = call_record_watch();
    pid_t pid = fork();
    if (pid == 0) {
        if (call_watch_install(ends[1], w) != 0)
            _exit(77);
        change(argv[1]);
    }
    close(ends[1]);
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    MUST(poll(&p, 1, 20000) == 1);
    watch = call_watch_take(ends[0]);
    int dir = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
    MUST(disk_recorder_open(&to, record, 0, &err) == 0);
    struct call_record *r = watch < 0 ? NULL : call_record_new(watch, dir, to, &err);
    umask(0);
    if (r)
        call_record_begin(r);
    for (p.fd = watch; r && poll(&p, 1, 20000) == 1 && call_record_serve(r, p.revents) >= 0;)
        ;
    MUST(waitpid(pid, &status, 0) == pid);
    MUST(disk_recorder_close(to, &err) == 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        printf("skip: no system call can be watched here\n");
    else if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        show(record);
    call_record_free(r);
    return 0;
}
