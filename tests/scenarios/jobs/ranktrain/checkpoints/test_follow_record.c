/* Following a directory, and finding out who shares one, on a system that is played: each call, what comes of each that
 * fails, and what is left then. */
#include "tests/played.h"

#include "scenarios/jobs/ranktrain/checkpoint_dir.h"
#include "scenarios/jobs/ranktrain/checkpoints/follow.h"
#include "scenarios/jobs/ranktrain/checkpoints/places.h"

#include "base/sys/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

enum { WAKE_FD = 900, DIR_FD = 7 };

static struct {
    int64_t now_ns;
    int watches;
} host;

static int played_clock(clockid_t id, struct timespec *ret) {
    assert_int_equal(id, CLOCK_MONOTONIC);
    *ret = (struct timespec){host.now_ns / 1000000000, host.now_ns % 1000000000};
    return 0;
}

static int open_next(int least) {
    int fd = played_open_from(least);
    note("  as %d", fd);
    return fd;
}

/* ---- follow ---- */

static int played_inotify(int flags) {
    return fails("inotify %d", flags) ? -1 : open_next(draw(2));
}

static int played_add_watch(int fd, const char *path, uint32_t mask) {
    if (fails("watch %s by %d, %x", path, fd, mask))
        return -1;
    errno = ENOENT;
    return draw(6) ? ++host.watches : -1;
}

static int played_remove_watch(int fd, int watch) {
    note("watch %d of %d no more", watch, fd);
    return 0;
}

static int played_above(const char *path, char ret[PATH_MAX]) {
    int missing = draw(3);
    strcpy(ret, missing == 2 ? "/a" : missing ? "/a/b" : path);
    note("above %s is %s", path, ret);
    return missing;
}

static bool played_exists(const char *path) {
    int is = draw(3) == 0;
    note("is there %s: %d", path, is);
    return is;
}

static int played_poll(struct pollfd *p, nfds_t n, int ms) {
    if (fails("poll %d for %d, %d for %d, %d of %d ms", p[0].fd, p[0].events, p[1].fd, p[1].events,
              (int)n, ms))
        return -1;
    int luck = draw(8);
    p[0].revents = luck > 3 ? POLLIN : 0;
    p[1].revents = luck == 3 || luck == 7 ? POLLIN : 0;
    host.now_ns += p[0].revents || p[1].revents ? 1000000 : (int64_t)ms * 1000000;
    return (p[0].revents != 0) + (p[1].revents != 0);
}

/* Some events, one behind another, with names of several lengths; then nothing more. */
static ssize_t played_read(int fd, void *p, size_t n) {
    static const uint32_t masks[] = {IN_CREATE,      IN_MOVED_TO,  IN_CREATE,
                                     IN_DELETE_SELF, IN_MOVE_SELF, IN_IGNORED};
    assert_true(n >= 300);
    int events = draw(3);
    size_t at = 0;
    for (int i = 0; i < events; i++) {
        struct inotify_event e = {.wd = host.watches - (draw(3) == 0),
                                  .mask = masks[draw(draw(3) ? 3 : 6)],
                                  .len = 16 * (uint32_t)draw(4)};
        memcpy((char *)p + at, &e, sizeof(e));
        memset((char *)p + at + sizeof(e), 'x', e.len);
        at += sizeof(e) + e.len;
        note("  %d: %x, %u", e.wd, e.mask, e.len);
    }
    errno = EAGAIN;
    note("read %d: %zu", fd, at);
    return events ? (ssize_t)at : -1;
}

static int played_open_dir(const char *path, int flags) {
    if (fails("open %s, %d", path, flags))
        return -1;
    errno = ENOENT;
    return draw(3) ? open_next(0) : -1;
}

/* What is open, and what the name stands for then: it, another, or nothing. */
static int played_fstat(int fd, struct stat *ret) {
    if (fails("fstat %d", fd))
        return -1;
    *ret = (struct stat){.st_ino = 5, .st_dev = 6};
    return 0;
}

static int played_stat(const char *path, struct stat *ret) {
    if (fails("stat %s", path))
        return -1;
    int luck = draw(12);
    *ret = (struct stat){.st_ino = 5 + (luck == 0), .st_dev = 6 + (luck == 1)};
    errno = luck == 2 ? ENOENT : EACCES;
    note("  %d", luck < 4 ? luck : 4);
    return luck == 2 || luck == 3 ? -1 : 0;
}

static int played_statfs(int fd, struct statfs *ret) {
    static const long types[] = {0xef53, 0x01021994, 0x6969, 0xff534d42, 0x47504653, 0x5346414f};
    if (fails("statfs %d", fd))
        return -1;
    *ret = (struct statfs){.f_type = types[draw(2) ? draw(2) : draw(6)]};
    note("  %lx", (unsigned long)ret->f_type);
    return 0;
}

#define clock_gettime        played_clock
#define inotify_init1        played_inotify
#define inotify_add_watch    played_add_watch
#define inotify_rm_watch     played_remove_watch
#define checkpoint_dir_above played_above
#define file_exists          played_exists
#define file_close           played_file_close
#define read                 played_read
#define open(path, flags)    played_open_dir(path, flags)
#define fstat                played_fstat
#define stat(path, ret)      played_stat(path, ret)
#define fstatfs              played_statfs
#define poll(p, n, ms)       played_poll(p, n, ms)
#include "scenarios/jobs/ranktrain/checkpoints/follow.c"
#undef read
#undef open
#undef stat
#undef poll

static void follow_all(uint64_t seed) {
    static const int64_t times[] = {0, INT64_C(250000000), INT64_C(1000000000),
                                    INT64_C(5000000000)};
    struct err err = {0};
    struct follow *f = NULL;
    memset(&host, 0, sizeof(host));
    host.now_ns = INT64_C(7000000000);
    int64_t interval = times[draw(4)], beat = times[1 + draw(3)];
    int r = follow_new(&f, "/a/b/c", interval, beat, WAKE_FD, &err);
    note("> new %d, %d %s, %d", r, err.code, err.msg, f != NULL);
    for (int i = 0; f && i < 3; i++) {
        err = (struct err){0};
        int fd = follow_open(f, &err);
        note("> opened %d, %d %s", fd, err.code, err.msg);
        for (int k = 0; fd >= 0 && k < 3; k++) {
            err = (struct err){0};
            r = follow_wait(f, &err);
            note("> waited %d, %d %s", r, err.code, err.msg);
        }
        played_file_close(&fd);
    }
    note("> %d", follow_free(f) != NULL);
    note("> %d", follow_free(NULL) != NULL);
}

/* ---- places ---- */

static int open_at(int dir, const char *name, const int *flags, size_t n) {
    bool makes = flags[0] & O_CREAT;
    assert_int_equal(dir, DIR_FD);
    assert_int_equal(n, makes ? 2 : 1);
    if (fails("open %s, %d, %o", name, flags[0], makes ? (unsigned)flags[1] : 0))
        return -1;
    errno = draw(2) ? ENOENT : ESTALE;
    return makes || draw(3) == 0 ? open_next(0) : -1;
}

static int played_unlink(int dir, const char *name, int flags) {
    note("unlink %s in %d, %d", name, dir, flags);
    return 0;
}

static int played_meet(struct bootstrap *b, struct err *err) {
    return fails("meet") ? err_set(err, -errno, "meet") : 0;
}

static int played_exchange(struct bootstrap *b, const void *mine, size_t n, void *ret,
                           struct err *err) {
    int keeper, *all = ret;
    assert_int_equal(n, sizeof(keeper));
    memcpy(&keeper, mine, n);
    if (fails("exchange %d", keeper))
        return err_set(err, -errno, "exchange");
    for (int i = 0; i < b->request.world; i++) /* nobody sees a place that it has not */
        all[i] = i == b->request.rank ? keeper : draw(2) ? i : draw(i + 1);
    for (int i = 0; i < b->request.world; i++)
        note("  %d", all[i]);
    return 0;
}

#define openat(dir, name, ...)                                                                     \
    open_at(dir, name, (int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))
#define unlinkat           played_unlink
#define bootstrap_meet     played_meet
#define bootstrap_exchange played_exchange
#include "scenarios/jobs/ranktrain/checkpoints/places.c"
#undef openat

static void find_all(uint64_t seed) {
    struct err err = {0};
    struct checkpoint_places p = {.n = -7};
    static struct bootstrap b;
    memset(&host, 0, sizeof(host));
    b = (struct bootstrap){.request = {.world = 1 + draw(6), .round = draw(30)}};
    b.request.rank = draw(b.request.world);
    for (int i = 0; i < DOOR_SESSION; i++)
        b.group.session[i] = (unsigned char)draw(256);
    note("rank %d of %d", b.request.rank, b.request.world);
    int r = places_find(&b, DIR_FD, &p, &err);
    note("> %d, %d %s: %d", r, err.code, err.msg, p.n);
    for (int i = 0; i < BOOTSTRAP_MEMBERS; i++)
        if (p.keeper[i] || i < b.request.world)
            note("> %d keeps for %d", p.keeper[i], i);
}

static const struct play plays[] = {{"tests/scenarios/jobs/ranktrain/checkpoints/record/follow.txt",
                                     follow_all,
                                     150,
                                     true,
                                     {EINTR, EACCES}},
                                    {"tests/scenarios/jobs/ranktrain/checkpoints/record/places.txt",
                                     find_all,
                                     150,
                                     true,
                                     {ENOENT, EIO}}};

static void test_how_a_directory_is_followed_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

static void test_who_shares_a_directory_is_on_record(void **state) {
    (void)state;
    played_check(&plays[1]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_a_directory_is_followed_is_on_record),
        cmocka_unit_test(test_who_shares_a_directory_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
