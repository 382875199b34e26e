/* Leases: whose count, what they want to be kept, and what of a reader that is gone is taken away. */
#include "scenarios/jobs/ranktrain/checkpoints/leases.h"

#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static char place[64];
static int dir;

static int setup(void **state) {
    (void)state;
    strcpy(place, "/tmp/test-leases-XXXXXX");
    if (!mkdtemp(place))
        return -1;
    dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0;
}

static int teardown(void **state) {
    (void)state;
    close(dir);
    return file_remove_tree(place, NULL) < 0;
}

/* The time of the last change of the directory is 10000; that of the file so much before it. */
static void put(const char *name, const char *text, long older_s) {
    struct timespec of_file[2] = {{.tv_sec = 10000 - older_s}, {.tv_sec = 10000 - older_s}};
    struct timespec of_dir[2] = {{.tv_sec = 10000}, {.tv_sec = 10000}};
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(futimens(fd, of_file), 0);
    assert_int_equal(futimens(dir, of_dir), 0);
    close(fd);
}

static bool is_there(const char *name) {
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

#define LEASE "evaluator-host-1.lease"

static void test_terms_are_those_that_a_lease_says(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t read, every;
        bool all;
    } rows[] = {{"{\"read\": 40, \"every\": 20}", 40, 20, false},
                {"{\"read\": 0, \"every\": 7}\n", 0, 7, false},
                {"{\"every\": 20}", -1, 20, false},
                {"{\"read\": 40}", 40, 1, false},
                {"{}", -1, 1, false},
                {"", 0, 0, true},
                {"{\"read\": 40", 0, 0, true},
                {"no object", 0, 0, true}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct leases l;
        memset(&l, 0xa5, sizeof(l));
        put(LEASE, rows[i].text, 0);
        leases_look(dir, &l);
        assert_int_equal(l.all, rows[i].all);
        assert_int_equal(l.n, !rows[i].all);
        if (!rows[i].all) {
            assert_int_equal(l.terms[0].read, rows[i].read);
            assert_int_equal(l.terms[0].every, rows[i].every);
        }
    }
}

/* A lease is 256 bytes long; one that is longer cannot be read, and wants everything. */
static void test_a_lease_is_so_long_and_no_longer(void **state) {
    (void)state;
    char text[300];
    struct leases l;
    snprintf(text, sizeof(text), "%-256s", "{\"read\": 40, \"every\": 20}");
    put(LEASE, text, 0);
    leases_look(dir, &l);
    assert_true(l.n == 1 && !l.all);
    strcat(text, " ");
    put(LEASE, text, 0);
    leases_look(dir, &l);
    assert_true(l.n == 0 && l.all);
}

static void test_what_is_called_otherwise_is_no_lease(void **state) {
    (void)state;
    static const struct {
        const char *name;
        bool is;
    } rows[] = {{"evaluator-host-1.lease", true},
                {"evaluator-.lease", true},
                {"evaluator-host-1.lease2", false},
                {"evaluator-host-1", false},
                {"evaluato-host-1.lease", false},
                {"Evaluator-host-1.lease", false},
                {".lease", false},
                {"lease", false},
                {"step-00000001", false},
                {"evaluator-x.leas", false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct leases l;
        put(rows[i].name, "{}", 0);
        leases_look(dir, &l);
        if (l.n != rows[i].is)
            fail_msg("%s", rows[i].name);
        put(rows[i].name, "{}", 3600);
        leases_look(dir, &l);
        assert_int_equal(l.n, 0);
        assert_int_equal(is_there(rows[i].name), !rows[i].is);
        unlinkat(dir, rows[i].name, 0);
    }
}

/* Nobody holds it: it counts for as long as it is no older than that, beside its directory. */
static void test_a_lease_without_a_lock_counts_for_a_while(void **state) {
    (void)state;
    for (long older = LEASE_SECONDS - 1; older <= LEASE_SECONDS + 1; older++) {
        struct leases l;
        put(LEASE, "{\"read\": 40, \"every\": 20}", older);
        leases_look(dir, &l);
        assert_int_equal(l.n, older < LEASE_SECONDS);
        assert_false(l.all);
        assert_int_equal(is_there(LEASE), older < LEASE_SECONDS);
    }
}

static void test_as_many_as_there_is_room_for_and_then_all(void **state) {
    (void)state;
    for (int n = 1; n <= LEASES + 2; n++) {
        char name[64];
        struct leases l;
        snprintf(name, sizeof(name), "evaluator-host-%d.lease", n);
        put(name, "{\"read\": 40, \"every\": 20}", 0);
        leases_look(dir, &l);
        assert_int_equal(l.n, n < LEASES ? n : LEASES);
        assert_int_equal(l.all, n > LEASES);
        assert_true(leases_want(&l, 60) && leases_want(&l, 59) == (n > LEASES));
    }
}

static void test_a_link_is_no_lease(void **state) {
    (void)state;
    struct leases l;
    put("other", "{}", 0);
    assert_int_equal(symlinkat("other", dir, LEASE), 0);
    leases_look(dir, &l);
    assert_int_equal(l.n, 0);
    assert_true(is_there("other"));
}

/* Against the sentence of the header, in every way that two readers can want. */
static void test_what_one_reader_still_needs_is_wanted(void **state) {
    (void)state;
    static const int64_t reads[] = {-1, 0, 6, 7}, everys[] = {-1, 0, 1, 2, 3, 7};
    enum { R = sizeof(reads) / sizeof(*reads), E = sizeof(everys) / sizeof(*everys) };
    for (int a = 0; a < R * E; a++)
        for (int b = 0; b < R * E; b++)
            for (int n = 0; n <= 2; n++)
                for (int64_t step = 0; step <= 15; step++) {
                    const struct leases l = {
                        .n = n,
                        .terms = {{reads[a % R], everys[a / R]}, {reads[b % R], everys[b / R]}}};
                    bool wanted = false;
                    for (int i = 0; i < n; i++) {
                        const struct lease_terms *t = &l.terms[i];
                        bool skips = t->every > 1 && step % t->every != 0;
                        wanted |= step >= t->read + 1 && !skips;
                    }
                    assert_int_equal(leases_want(&l, step), wanted);
                }
    const struct leases all = {.all = true, .n = 1, .terms = {{99, 1}}};
    assert_true(leases_want(&all, 3));
}

static void read_all(const char *name, char ret[512]) {
    int fd = openat(dir, name, O_RDONLY);
    ssize_t n = read(fd, ret, 511);
    assert_true(n >= 0);
    ret[n] = 0;
    close(fd);
}

static void test_a_reader_says_what_it_has_read(void **state) {
    (void)state;
    struct lease l;
    struct leases seen;
    struct err err;
    char text[512], name[160], host[65] = "";
    gethostname(host, sizeof(host) - 1);
    for (char *c = host; *c; c++)
        *c = *c == '/' ? '_' : *c;
    snprintf(name, sizeof(name), "evaluator-%s-%ld.lease", host, (long)getpid());
    assert_int_equal(lease_take(&l, dir, 20, &err), 0);
    assert_string_equal(l.name, name);
    assert_int_equal(fcntl(l.fd, F_GETFD), FD_CLOEXEC);
    read_all(name, text);
    assert_int_equal(strlen(text), 256);
    assert_memory_equal(text, "{\"format\": \"ranktrain-lease\", \"read\": -1, \"every\": 20} ",
                        55);
    assert_int_equal(text[255], '\n');
    assert_int_equal(lease_read(&l, 1234567, &err), 0);
    read_all(name, text);
    assert_int_equal(strlen(text), 256);
    leases_look(dir, &seen);
    assert_true(seen.n == 1 && seen.terms[0].read == 1234567 && seen.terms[0].every == 20);
    lease_drop(&l);
    assert_int_equal(l.fd, -1);
    assert_false(is_there(name));
}

static long older_by(const struct lease *l, long seconds) {
    struct stat st;
    struct timespec old[2] = {{.tv_sec = 10000 - seconds}, {.tv_sec = 10000 - seconds}};
    assert_int_equal(futimens(l->fd, old), 0);
    assert_int_equal(fstat(l->fd, &st), 0);
    return st.st_mtim.tv_sec;
}

/* However old: a lock is held by who lives. Another open description of this process counts as another's. */
static void test_a_lease_that_is_locked_counts_however_old_it_is(void **state) {
    (void)state;
    struct lease l;
    struct leases seen;
    struct stat st;
    struct err err;
    assert_int_equal(lease_take(&l, dir, 1, &err), 0);
    long old = older_by(&l, 100 * LEASE_SECONDS);
    leases_look(dir, &seen);
    assert_int_equal(seen.n, 1);
    assert_true(is_there(l.name));
    lease_renew(&l);
    assert_int_equal(fstat(l.fd, &st), 0);
    assert_true(st.st_mtim.tv_sec > old);
    struct lease again;
    assert_true(lease_take(&again, dir, 1, &err) < 0);
    char wanted[256];
    snprintf(wanted, sizeof(wanted), "lock %s: Resource temporarily unavailable", l.name);
    assert_string_equal(err.msg, wanted);
    lease_drop(&l);
}

static void test_what_was_never_taken_is_dropped_without_harm(void **state) {
    (void)state;
    struct lease none = {.fd = -1, .dir = dir};
    put("evaluator-x-1.lease", "{}", 0);
    strcpy(none.name, "evaluator-x-1.lease");
    lease_renew(&none);
    lease_drop(&none);
    assert_true(is_there("evaluator-x-1.lease"));
}

static void test_a_lease_that_cannot_be_made_is_named(void **state) {
    (void)state;
    struct lease l = {.fd = -7};
    struct err err;
    char wanted[256];
    int gone = open("/proc/self/task", O_RDONLY | O_DIRECTORY);
    assert_true(gone >= 0);
    int r = lease_take(&l, gone, 1, &err);
    assert_true(r < 0);
    snprintf(wanted, sizeof(wanted),
             ".lease, without which checkpoints may be gone before they are read: %s",
             strerror(-r));
    assert_non_null(strstr(err.msg, wanted));
    assert_memory_equal(err.msg, "make evaluator-", 15);
    assert_int_equal(l.fd, -7);
    close(gone);
}

static void test_a_disk_that_is_full_is_told(void **state) {
    (void)state;
    struct lease l = {.fd = open("/dev/full", O_RDWR), .every = 1};
    struct err err;
    strcpy(l.name, "lease");
    assert_int_equal(lease_read(&l, 3, &err), -ENOSPC);
    assert_string_equal(err.msg, "write lease: No space left on device");
    close(l.fd);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(terms_are_those_that_a_lease_says),
        TEST(a_lease_is_so_long_and_no_longer),
        TEST(what_is_called_otherwise_is_no_lease),
        TEST(a_lease_without_a_lock_counts_for_a_while),
        TEST(as_many_as_there_is_room_for_and_then_all),
        TEST(a_link_is_no_lease),
        TEST(what_one_reader_still_needs_is_wanted),
        TEST(a_reader_says_what_it_has_read),
        TEST(a_lease_that_is_locked_counts_however_old_it_is),
        TEST(what_was_never_taken_is_dropped_without_harm),
        TEST(a_lease_that_cannot_be_made_is_named),
        TEST(a_disk_that_is_full_is_told),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
