/* What a fault on another host keeps goes into the file that was made for it, and into nothing else. */
#include "harness/cluster/kept_file.h"

#include "base/sys/file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[PATH_MAX];

static const char *at(const char *name) {
    static char path[2][PATH_MAX + 16];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
    return path[turn];
}

static int make_dir(void **state) {
    const char *tmp = getenv("TMPDIR");
    char drawn[PATH_MAX];
    snprintf(drawn, sizeof(drawn), "%s/kept-XXXXXX", tmp ? tmp : "/tmp");
    (void)state;
    return mkdtemp(drawn) && realpath(drawn, dir) ? 0 : -1;
}

static void test_the_open_file_is_found_by_its_name_and_written_there(void **state) {
    char name[PATH_MAX];
    struct stat st;
    struct err err;
    (void)state;
    FILE_CLOSE int made = open(at("core"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(kept_file_name(made, false, name, sizeof(name), &err), 0);
    assert_string_equal(name, at("core"));
    FILE_CLOSE int there = kept_file_open(name, &err);
    assert_true(there >= 0);
    assert_int_equal(write(there, "ELF", 3), 3);
    assert_int_equal(fstat(made, &st), 0);
    assert_int_equal(st.st_size, 3);
}

static void test_another_user_may_write_it_and_not_read_it(void **state) {
    char name[PATH_MAX];
    struct stat st;
    struct err err;
    (void)state;
    FILE_CLOSE int made = open(at("others"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(kept_file_name(made, true, name, sizeof(name), &err), 0);
    assert_int_equal(fstat(made, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0602);
}

static void test_what_was_put_in_its_place_is_left_alone(void **state) {
    struct err err;
    (void)state;
    FILE_CLOSE int full = open(at("full"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(write(full, "secret", 6), 6);
    assert_int_equal(symlink(at("full"), at("link")), 0);
    assert_int_equal(mkfifo(at("fifo"), 0666), 0);
    assert_int_equal(kept_file_open(at("full"), &err), -EEXIST);
    assert_non_null(strstr(err.msg, "is no empty file"));
    assert_int_equal(kept_file_open(at("link"), &err), -ELOOP);
    assert_true(kept_file_open(at("fifo"), &err) < 0);
    assert_int_equal(kept_file_open(at("absent"), &err), -ENOENT);
    assert_non_null(strstr(err.msg, "absent"));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_open_file_is_found_by_its_name_and_written_there),
        cmocka_unit_test(test_another_user_may_write_it_and_not_read_it),
        cmocka_unit_test(test_what_was_put_in_its_place_is_left_alone),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, make_dir, NULL);
}
