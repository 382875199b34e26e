/* The folder in /dev/shm of a recorded command, and whose may be taken away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "base/sys/file.h"
#include "harness/verbs/crashpoints/memory.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Of a harness that was this process's number, and began at another moment: it is dead. */
static struct presence dead(uint64_t later) {
    struct presence p;
    presence_own(&p, false);
    p.harness.start_ticks += later;
    return p;
}

static bool has_memory(void) {
    struct statfs fs;
    return statfs("/dev/shm", &fs) == 0 && fs.f_type == TMPFS_MAGIC &&
           access("/dev/shm", W_OK) == 0;
}

static void make(const struct presence *p, char path[CRASH_MEMORY_PATH_MAX]) {
    struct err err = {0};
    if (!has_memory())
        skip();
    assert_int_equal(crash_memory_make(p, 4096, &err), 0);
    crash_memory_path(p, path);
}

static void test_it_is_its_owners_alone_and_goes_with_all_that_is_in_it(void **state) {
    struct presence p = dead(1);
    char path[CRASH_MEMORY_PATH_MAX], below[CRASH_MEMORY_PATH_MAX + 8];
    struct stat st;
    struct err err = {0};
    (void)state;
    make(&p, path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(crash_memory_make(&p, 4096, &err), -EEXIST);
    snprintf(below, sizeof(below), "%s/a/b", path);
    assert_int_equal(file_make_dirs(below, 0755, NULL), 0);
    assert_int_equal(crash_memory_remove(&p, &err), 0);
    assert_false(file_exists(path));
    assert_int_equal(crash_memory_remove(&p, &err), 0);
}

static void test_without_room_nothing_is_made_and_it_is_said_why(void **state) {
    struct presence p = dead(2);
    char path[CRASH_MEMORY_PATH_MAX];
    struct err err = {0};
    (void)state;
    if (!has_memory())
        skip();
    assert_int_equal(crash_memory_make(&p, UINT64_MAX / 2, &err), -ENOSPC);
    assert_non_null(strstr(err.msg, "--max-bytes"));
    crash_memory_path(&p, path);
    assert_false(file_exists(path));
}

static void test_only_a_dead_harness_of_this_place_has_left_something(void **state) {
    struct presence p = dead(3), living = dead(0), rebooted = p, elsewhere = p;
    char path[CRASH_MEMORY_PATH_MAX], its[CRASH_MEMORY_PATH_MAX];
    struct err err = {0};
    (void)state;
    make(&p, path);
    assert_true(crash_memory_is_left(&p));
    str_copy(rebooted.boot, sizeof(rebooted.boot), "another");
    assert_false(crash_memory_is_left(&rebooted));
    str_copy(elsewhere.space, sizeof(elsewhere.space), "pid:[1]");
    assert_false(crash_memory_is_left(&elsewhere));
    assert_int_equal(crash_memory_remove(&p, &err), 0);
    assert_false(crash_memory_is_left(&p));
    make(&living, its);
    assert_false(crash_memory_is_left(&living));
    str_copy(living.boot, sizeof(living.boot), "another"); /* a note that was written by hand */
    assert_false(crash_memory_is_left(&living));
    assert_int_equal(crash_memory_remove(&living, &err), 0);
}

static void test_a_link_of_that_name_is_nothing_of_ours(void **state) {
    struct presence p = dead(4);
    char path[CRASH_MEMORY_PATH_MAX];
    struct err err = {0};
    (void)state;
    if (!has_memory())
        skip();
    crash_memory_path(&p, path);
    assert_int_equal(symlink("/", path), 0);
    assert_false(crash_memory_is_left(&p));
    assert_int_equal(crash_memory_make(&p, 4096, &err), -EEXIST);
    assert_int_equal(unlink(path), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_its_owners_alone_and_goes_with_all_that_is_in_it),
        cmocka_unit_test(test_without_room_nothing_is_made_and_it_is_said_why),
        cmocka_unit_test(test_only_a_dead_harness_of_this_place_has_left_something),
        cmocka_unit_test(test_a_link_of_that_name_is_nothing_of_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
