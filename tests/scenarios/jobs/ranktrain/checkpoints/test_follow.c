/* Following a directory: one that is there, that comes in time, that goes, and that lies where nothing is told. */
#include "scenarios/jobs/ranktrain/checkpoints/follow.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static char place[64];
static int wake_fd;

/* In place of the C library's: what kind of file system the tests want. 0: what it is. */
static long kind;

int fstatfs(int fd, struct statfs *ret) {
    int r = (int)syscall(SYS_fstatfs, fd, ret);
    if (kind)
        ret->f_type = kind;
    return r;
}

static const int64_t hour_ns = INT64_C(3600000000000), moment_ns = INT64_C(1000000);

static int setup(void **state) {
    (void)state;
    kind = 0;
    wake_fd = eventfd(0, EFD_CLOEXEC);
    strcpy(place, "/tmp/test-follow-XXXXXX");
    return mkdtemp(place) ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    close(wake_fd);
    return file_remove_tree(place, NULL) < 0;
}

static const char *path_of(const char *name) {
    static char path[4][128];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", place, name);
    return path[turn];
}

static struct follow *begin(const char *dir, int64_t interval_ns, int64_t beat_ns) {
    struct follow *f;
    struct err err;
    assert_int_equal(follow_new(&f, dir, interval_ns, beat_ns, wake_fd, &err), 0);
    return f;
}

static void make(const char *name) {
    assert_int_equal(mkdir(path_of(name), 0700), 0);
}

static void assert_is(int fd, const char *name) {
    struct stat a, b;
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &a), 0);
    assert_int_equal(stat(path_of(name), &b), 0);
    assert_true(a.st_ino == b.st_ino);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close(fd);
}

static void test_a_directory_that_is_there_is_opened_at_once(void **state) {
    (void)state;
    struct err err;
    make("a");
    struct follow *f = begin(path_of("a"), 0, hour_ns);
    assert_is(follow_open(f, &err), "a");
    assert_null(follow_free(f));
    assert_null(follow_free(NULL));
}

/* What comes between two waits, and what came before the first. */
static void test_what_has_come_is_never_missed(void **state) {
    (void)state;
    struct err err;
    make("a");
    struct follow *f = begin(path_of("a"), 0, hour_ns);
    assert_is(follow_open(f, &err), "a");
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof(name), "a/%d", i);
        make(name);
        if (i == 1) /* more than one turn's worth */
            make("a/also");
        assert_int_equal(follow_wait(f, &err), 0);
    }
    make("b");
    assert_int_equal(rename(path_of("b"), path_of("a/b")), 0);
    assert_int_equal(follow_wait(f, &err), 0);
    follow_free(f);
}

static void test_a_beat_ends_a_wait_in_which_nothing_comes(void **state) {
    (void)state;
    struct err err;
    make("a");
    static const int64_t both[][2] = {{0, 5}, {5, 100000}, {100000, 5}, {5, 5}};
    for (size_t i = 0; i < sizeof(both) / sizeof(*both); i++) {
        struct follow *f = begin(path_of("a"), both[i][0] * moment_ns, both[i][1] * moment_ns);
        assert_is(follow_open(f, &err), "a");
        int64_t begun = deadline_now_ns();
        assert_int_equal(follow_wait(f, &err), 0);
        assert_true(deadline_now_ns() - begun >= 5 * moment_ns);
        assert_true(deadline_now_ns() - begun < 90000 * moment_ns);
        follow_free(f);
    }
}

static void test_who_is_woken_stops_waiting(void **state) {
    (void)state;
    struct err err = {0};
    make("a");
    struct follow *f = begin(path_of("a"), 0, hour_ns);
    assert_is(follow_open(f, &err), "a");
    eventfd_write(wake_fd, 1);
    assert_int_equal(follow_wait(f, &err), -ECANCELED);
    make("a/b"); /* though there is something */
    assert_int_equal(follow_wait(f, &err), -ECANCELED);
    follow_free(f);
    f = begin(path_of("b/c/d"), 0, hour_ns);
    assert_int_equal(follow_open(f, &err), -ECANCELED);
    assert_int_equal(err.code, 0);
    follow_free(f);
}

static void test_a_directory_that_goes_is_missed(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct err err;
        char wanted[160];
        make("a");
        struct follow *f = begin(path_of("a"), 0, hour_ns);
        assert_is(follow_open(f, &err), "a");
        if (i)
            assert_int_equal(rename(path_of("a"), path_of("b")), 0);
        else
            assert_int_equal(rmdir(path_of("a")), 0);
        assert_int_equal(follow_wait(f, &err), -ENOENT);
        snprintf(wanted, sizeof(wanted), "%s has been taken away", path_of("a"));
        assert_string_equal(err.msg, wanted);
        follow_free(f);
    }
}

/* Who follows it has it open, of which the kernel does not tell the end. */
static void test_a_directory_that_is_open_is_missed_too(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct err err;
        make("a");
        make("other");
        struct follow *f = begin(path_of("a"), 0, hour_ns);
        int fd = follow_open(f, &err);
        assert_true(fd >= 0);
        assert_int_equal(rmdir(path_of("other")), 0);
        assert_int_equal(follow_wait(f, &err), 0);
        assert_int_equal(rmdir(path_of("a")), 0);
        if (i == 1) /* another is no substitute */
            make("a");
        assert_int_equal(follow_wait(f, &err), -ENOENT);
        close(fd);
        follow_free(f);
        rmdir(path_of("a"));
    }
}

/* A directory of those that it was waited for in may go, and another come. */
static void test_one_that_goes_above_is_no_loss(void **state) {
    (void)state;
    struct err err;
    make("a");
    make("a/b");
    struct follow *f = begin(path_of("a/b"), 0, hour_ns);
    assert_is(follow_open(f, &err), "a/b");
    make("a/b/c");
    make("a/b/d");
    assert_int_equal(rmdir(path_of("a/b/c")), 0);
    assert_int_equal(follow_wait(f, &err), 0);
    follow_free(f);
}

static void *open_it(void *arg) {
    struct follow **f = arg;
    static int fd;
    struct err err;
    fd = follow_open(*f, &err);
    return &fd;
}

/* Each part of the path comes while the one above is waited in, or before. */
static void test_a_directory_is_waited_for_from_wherever_it_is_missing(void **state) {
    (void)state;
    static const char *const whole = "a/b/c/d";
    for (size_t have = 0; have <= strlen(whole); have += have ? 2 : 1) {
        struct follow *f = begin(path_of(whole), 0, hour_ns);
        pthread_t thread;
        void *ret;
        char part[16];
        for (size_t n = 1; n <= have; n += 2) {
            snprintf(part, sizeof(part), "%.*s", (int)n, whole);
            make(part);
        }
        assert_int_equal(pthread_create(&thread, NULL, open_it, &f), 0);
        for (size_t n = have ? have + 2 : 1; n <= strlen(whole); n += 2) {
            snprintf(part, sizeof(part), "%.*s", (int)n, whole);
            make("x");
            assert_int_equal(rename(path_of("x"), path_of(part)), 0);
        }
        assert_int_equal(pthread_join(thread, &ret), 0);
        assert_is(*(int *)ret, whole);
        follow_free(f);
        assert_int_equal(file_remove_tree(path_of("a"), NULL), 0);
    }
}

static void test_what_stands_in_the_way_is_named(void **state) {
    (void)state;
    struct err err;
    char wanted[160];
    close(open(path_of("file"), O_WRONLY | O_CREAT, 0600));
    struct follow *f = begin(path_of("file"), 0, hour_ns);
    assert_int_equal(follow_open(f, &err), -ENOTDIR);
    snprintf(wanted, sizeof(wanted), "watch %s: Not a directory", path_of("file"));
    assert_string_equal(err.msg, wanted);
    follow_free(f);
    f = begin(path_of("file/a"), 0, hour_ns);
    assert_int_equal(follow_open(f, &err), -ENOTDIR);
    follow_free(f);
}

/* By the numbers of statfs(2); where an interval is said nothing needs to be told. */
static void test_file_systems_that_tell_nothing_are_known(void **state) {
    (void)state;
    static const struct {
        long type;
        const char *name;
    } rows[] = {{0x6969, "NFS"},
                {0x517b, "SMB"},
                {(long)0xff534d42, "CIFS"},
                {(long)0xfe534d42, "SMB"},
                {0x00c36400, "Ceph"},
                {0x01021997, "9p"},
                {0x65735546, "FUSE"},
                {0x0bd00bd0, "Lustre"},
                {0x47504653, "GPFS"},
                {0x5346414f, "AFS"},
                {0x9123683e, NULL},
                {0x58465342, NULL},
                {0xef53, NULL},
                {0x01021994, NULL},
                {0x2fc12fc1, NULL}};
    make("a");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct err err = {0};
        char wanted[512];
        kind = rows[i].type;
        struct follow *f = begin(path_of("a"), 0, hour_ns);
        int fd = follow_open(f, &err);
        assert_int_equal(rows[i].name ? fd : 0, rows[i].name ? -EOPNOTSUPP : 0);
        if (rows[i].name) {
            snprintf(wanted, sizeof(wanted),
                     "%s lies on %s, where the kernel does not tell what other hosts do: say "
                     "--interval=SECONDS, at which it is looked at",
                     path_of("a"), rows[i].name);
            assert_string_equal(err.msg, wanted);
        } else
            assert_is(fd, "a");
        follow_free(f);
        f = begin(path_of("a"), hour_ns, hour_ns);
        assert_is(follow_open(f, &err), "a");
        follow_free(f);
    }
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_directory_that_is_there_is_opened_at_once),
        TEST(what_has_come_is_never_missed),
        TEST(a_beat_ends_a_wait_in_which_nothing_comes),
        TEST(who_is_woken_stops_waiting),
        TEST(a_directory_that_goes_is_missed),
        TEST(a_directory_that_is_open_is_missed_too),
        TEST(one_that_goes_above_is_no_loss),
        TEST(a_directory_is_waited_for_from_wherever_it_is_missing),
        TEST(what_stands_in_the_way_is_named),
        TEST(file_systems_that_tell_nothing_are_known),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
