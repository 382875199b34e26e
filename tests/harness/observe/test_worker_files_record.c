/* The files of a worker, with a /proc that is played: what it has for streams, which error file it was told of, what
 * becomes of them and what cannot be read are drawn; each call and each look is on record. */
#include "tests/played.h"

#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "harness/observe/worker_files.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    int64_t size;
    bool same; /* both streams are one file */
} world;

static ssize_t played_readlink(const char *path, char *ret, size_t size) {
    if (fails("read %s, %zu", path, size))
        return -1;
    int n = draw(6) ? snprintf(ret, size, "/logs/%s", strrchr(path, '/') + 1) : 0;
    memset(ret + n, 'x', size - (size_t)n); /* nobody ends it */
    return n;
}

static int look(struct stat *st) {
    *st = (struct stat){.st_mode = draw(10) ? S_IFREG : S_IFIFO,
                        .st_size = world.size,
                        .st_nlink = draw(2),
                        .st_ino = world.same ? 1 : (ino_t)(1 + draw(50)),
                        .st_dev = world.same ? 1 : (dev_t)(1 + draw(2))};
    return 0;
}

static int played_stat(const char *path, struct stat *st) {
    return fails("look at %s", path) ? -1 : look(st);
}

static int played_fstat(int fd, struct stat *st) {
    assert_true(played.open[fd]);
    return fails("look at %d", fd) ? -1 : look(st);
}

static int played_open_file(const char *path, int flags) {
    return fails("open %.60s (%zu), %d %d %d", path, strlen(path), (flags & O_PATH) != 0,
                 (flags & O_NONBLOCK) != 0, (flags & O_CLOEXEC) != 0)
               ? -1
               : played_open();
}

static int played_openat(int dir, const char *path, int flags) {
    assert_true(played.open[dir]);
    return fails("open %s in %d, %d %d %d", path, dir, (flags & O_NOFOLLOW) != 0,
                 (flags & O_NONBLOCK) != 0, (flags & O_CLOEXEC) != 0)
               ? -1
               : played_open();
}

/* Of a file that has become shorter less comes. */
static ssize_t played_pread(int fd, void *data, size_t size, off_t from) {
    size_t n = from < world.size ? (size_t)(world.size - from) : 0;
    if (fails("read %d: %zu from %lld", fd, size, (long long)from))
        return -1;
    n = n < size ? n : size;
    n = n > 9 && draw(3) == 0 ? 9 : n;
    for (size_t i = 0; i < n; i++)
        ((char *)data)[i] = (char)((from + (off_t)i) % 251);
    return (ssize_t)n;
}

static int played_read(const char *path, size_t max, struct buf *out, struct err *err) {
    static const char name[] = "TORCHELASTIC_ERROR_FILE=";
    static const char *const values[] = {"/logs/0/error.json", "error.json", "", "/error.json",
                                         "logs/error.json"};
    if (fails("read %s, %zu", path, max))
        return -errno;
    buf_put(out, "A=B\0XTORCHELASTIC_ERROR_FILE=/x/y", 34);
    int i = draw(7);
    if (i < 5)
        buf_printf(out, "%s%s", name, values[i]);
    else if (i == 5) /* just room for it, or not */
        buf_printf(out, "%s/%0*d", name, 1022 + draw(2), 7);
    if (draw(2) && i < 6) {
        buf_putc(out, '\0');
        buf_puts(out, "Z=1");
    }
    return 0;
}

#define readlink               played_readlink
#define stat(path, st)         played_stat(path, st)
#define fstat(fd, st)          played_fstat(fd, st)
#define open(path, flags)      played_open_file(path, flags)
#define openat(dir, path, how) played_openat(dir, path, how)
#define pread                  played_pread
#define file_read              played_read
#define file_close             played_file_close
#include "harness/observe/worker_files.c"
#undef stat
#undef fstat
#undef open
#undef openat

static void look_at_them(uint64_t seed) {
    static const int sizes[] = {0, 1, 20, 4096, 4097, MARKED_MAX - 1, MARKED_MAX, MARKED_MAX + 1};
    struct worker_file v[WORKER_FILES_N];
    memset(&world, 0, sizeof(world));
    world.same = draw(3) == 0;
    world.size = sizes[draw(8)];
    worker_files_open(v, 77);
    note("any %d", worker_files_any(v));
    for (int i = 0; i < WORKER_FILES_N; i++)
        note("%s: %d, %d, %.60s (%zu)", v[i].what, v[i].fd, v[i].dir, v[i].path, strlen(v[i].path));
    for (int round = 0; round < 2; round++, world.size = sizes[draw(8)])
        for (int i = 0; i < WORKER_FILES_N; i++) {
            struct worker_file_look l = {.bytes = -7, .mark = "untouched"};
            bool is = worker_file_look(&v[i], &l);
            note("%s: %d, %lld, %d, %s; of %lld", v[i].what, is, (long long)l.bytes, l.linked,
                 l.mark, (long long)v[i].bytes);
        }
    worker_files_close(v);
    note("any %d", worker_files_any(v));
}

static const struct play plays[] = {
    {"tests/harness/observe/record/worker_files.txt", look_at_them, 14, true, {ESRCH, EACCES}}};

static void test_what_becomes_of_files_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_becomes_of_files_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
