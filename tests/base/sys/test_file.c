#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[64];

static int make_dir(void **state) {
    (void)state;
    strcpy(dir, "/tmp/test_file_XXXXXXXX");
    return file_make_temp_dir(dir, NULL);
}

static int remove_dir(void **state) {
    (void)state;
    return file_remove_tree(dir, NULL);
}

static const char *in_dir(const char *name) {
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void test_what_was_written_atomically_is_read_back_and_nothing_is_beside_it(void **state) {
    (void)state;
    struct buf b = {0};
    struct err err = {0};
    assert_int_equal(file_write_atomic(in_dir("f"), "one", 3, &err), 0);
    assert_int_equal(file_write_atomic(in_dir("f"), "two!", 4, &err), 0);
    assert_int_equal(file_read(in_dir("f"), 100, &b, &err), 0);
    assert_string_equal(buf_str(&b), "two!");
    buf_fini(&b);
    assert_int_equal(unlink(in_dir("f")), 0);
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(mkdir(dir, 0700), 0);
}

/* As root a rename over /dev/null takes it from the whole machine. */
static void test_what_is_no_plain_file_is_written_into(void **state) {
    (void)state;
    struct err err = {0};
    char got[8] = {0};
    struct stat st;
    assert_int_equal(mkfifo(in_dir("fifo"), 0600), 0);
    assert_int_equal(symlink("fifo", in_dir("to-fifo")), 0);
    assert_int_equal(file_write_atomic(in_dir("to-fifo"), "x", 1, &err), -ENXIO);
    int fd = open(in_dir("fifo"), O_RDONLY | O_NONBLOCK);
    assert_int_equal(file_write_atomic(in_dir("to-fifo"), "text", 4, &err), 0);
    assert_int_equal(read(fd, got, sizeof(got)), 4);
    assert_string_equal(got, "text");
    assert_int_equal(lstat(in_dir("to-fifo"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(close(fd) + unlink(in_dir("fifo")) + unlink(in_dir("to-fifo")), 0);
    assert_int_equal(rmdir(dir), 0); /* nothing is beside it */
    assert_int_equal(mkdir(dir, 0700), 0);
}

static void test_a_write_into_a_missing_directory_names_the_path(void **state) {
    (void)state;
    struct err err = {0};
    assert_int_equal(file_write_atomic(in_dir("no/f"), "x", 1, &err), -ENOENT);
    assert_non_null(strstr(err.msg, "no/f"));
}

static void test_a_file_longer_than_allowed_is_refused_and_leaves_the_buffer(void **state) {
    (void)state;
    struct buf b = {0};
    struct err err = {0};
    buf_puts(&b, "kept");
    assert_int_equal(file_write(in_dir("long"), "0123456789", 10, &err), 0);
    assert_int_equal(file_read(in_dir("long"), 9, &b, &err), -EFBIG);
    assert_non_null(strstr(err.msg, "long"));
    assert_int_equal(b.len, 4);
    assert_int_equal(file_read(in_dir("long"), 10, &b, &err), 0);
    assert_string_equal(buf_str(&b), "kept0123456789");
    buf_fini(&b);
}

static int read_last(const char *path, int lines, size_t max, struct buf *out, struct err *err) {
    FILE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    return file_read_last(fd, lines, max, out, err);
}

static void test_the_last_lines_of_a_file_are_read_however_long_it_is(void **state) {
    (void)state;
    const char *path = in_dir("long.log");
    struct buf out = {0}, text = {0};
    struct err err = {0};
    for (int i = 0; i < 100000; i++)
        buf_printf(&text, "line %d\n", i);
    buf_puts(&text, "bar 1/2\rbar\x01 2/2");
    assert_int_equal(file_write(path, text.data, text.len, &err), 0);
    assert_int_equal(read_last(path, 3, 4096, &out, &err), 0);
    assert_string_equal(buf_str(&out), "line 99999\nbar 1/2\nbar  2/2");
    buf_clear(&out);
    assert_int_equal(read_last(path, 100000, 100, &out, &err), 0);
    assert_int_equal(out.len, 100);
    assert_int_equal(file_write(path, "", 0, &err), 0);
    assert_int_equal(read_last(path, 3, 4096, &out, &err), -ENODATA);
    assert_int_equal(read_last("/dev/null", 3, 4096, &out, &err), -ENODATA);
    assert_int_equal(read_last("/no/such/file", 3, 4096, &out, &err), -EBADF);
    buf_fini(&out);
    buf_fini(&text);
}

static void test_directories_are_made_along_a_path_and_a_file_in_the_way_is_named(void **state) {
    (void)state;
    struct err err = {0};
    assert_int_equal(file_make_dirs(in_dir("a/b/c"), 0755, &err), 0);
    assert_int_equal(file_make_dirs(in_dir("a/b/c"), 0755, &err), 0);
    assert_true(file_exists(in_dir("a/b/c")));
    assert_int_equal(file_write(in_dir("plain"), "", 0, &err), 0);
    assert_int_equal(file_make_dirs(in_dir("plain/x"), 0755, &err), -ENOTDIR);
    assert_non_null(strstr(err.msg, "plain"));
    assert_int_equal(file_make_dirs(in_dir("plain"), 0755, &err), -ENOTDIR);
}

static void test_removing_a_tree_never_follows_a_link_out_of_it(void **state) {
    (void)state;
    struct err err = {0};
    assert_int_equal(file_make_dirs(in_dir("outside"), 0755, &err), 0);
    assert_int_equal(file_write(in_dir("outside/precious"), "x", 1, &err), 0);
    assert_int_equal(file_make_dirs(in_dir("tree/deep/er"), 0755, &err), 0);
    assert_int_equal(file_write(in_dir("tree/deep/er/f"), "x", 1, &err), 0);
    assert_int_equal(symlink("../outside", in_dir("tree/link")), 0);
    assert_int_equal(symlink("outside", in_dir("top")), 0);
    assert_int_equal(file_remove_tree(in_dir("tree"), &err), 0);
    assert_int_equal(file_remove_tree(in_dir("top"), &err), 0);
    assert_false(file_exists(in_dir("tree")));
    assert_false(file_exists(in_dir("top")));
    assert_true(file_exists(in_dir("outside/precious")));
    assert_int_equal(file_remove_tree(in_dir("tree"), &err), 0);
}

static void test_the_own_folder_holds_the_running_program(void **state) {
    char folder[4096], program[4200];
    struct stat own, its;
    (void)state;
    snprintf(program, sizeof(program), "%s/test_file", file_own_folder(folder, sizeof(folder)));
    assert_int_equal(stat("/proc/self/exe", &own), 0);
    assert_int_equal(stat(program, &its), 0);
    assert_int_equal(own.st_ino, its.st_ino);
}

static void test_what_is_for_a_while_goes_where_it_can_be_written(void **state) {
    (void)state;
    assert_int_equal(file_write_atomic(in_dir("file"), "x", 1, NULL), 0);
    setenv("TMPDIR", "/nonexistent", 1);
    setenv("TEMP", in_dir("file"), 1);
    setenv("TMP", dir, 1);
    assert_string_equal(file_temp_base(), dir);
    setenv("TEMP", "", 1);
    unsetenv("TMP");
    assert_string_equal(file_temp_base(), "/tmp");
    unsetenv("TMPDIR");
    assert_string_equal(file_temp_base(), "/tmp");
    unsetenv("TEMP");
}

/* None of these is opened: a FIFO without a writer would wait for ever. */
static void test_what_is_no_plain_file_is_not_opened(void **state) {
    (void)state;
    struct err err = {0};
    struct buf b = {0};
    assert_int_equal(mkfifo(in_dir("fifo"), 0600), 0);
    assert_int_equal(symlink("fifo", in_dir("to-fifo")), 0);
    assert_int_equal(file_open_plain(in_dir("fifo"), &err), -EINVAL);
    assert_non_null(strstr(err.msg, "/fifo is a FIFO, and only plain files are read"));
    assert_int_equal(file_open_plain(in_dir("to-fifo"), &err), -EINVAL);
    assert_int_equal(file_open_plain("/dev/zero", &err), -EINVAL);
    assert_non_null(strstr(err.msg, "/dev/zero is a device"));
    assert_int_equal(file_open_plain(dir, &err), -EISDIR);
    assert_int_equal(file_open_plain(in_dir("none"), &err), -ENOENT);
    assert_int_equal(file_write(in_dir("plain"), "text", 4, &err), 0);
    assert_int_equal(file_read_plain(in_dir("plain"), 10, &b, &err), 0);
    assert_string_equal(buf_str(&b), "text");
    assert_int_equal(file_read_plain(in_dir("plain"), 3, &b, &err), -EFBIG);
    assert_non_null(strstr(err.msg, "/plain: read"));
    assert_int_equal(unlink(in_dir("fifo")) + unlink(in_dir("to-fifo")), 0);
    assert_int_equal(unlink(in_dir("plain")), 0);
    buf_fini(&b);
}

/* Whoever names it has opened it. */
static void test_a_descriptor_of_the_callers_own_is_taken_as_it_is(void **state) {
    (void)state;
    struct err err = {0};
    struct buf b = {0};
    char path[32];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "piped", 5), 5);
    close(ends[1]);
    snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
    assert_int_equal(file_read_plain(path, 10, &b, &err), 0);
    assert_string_equal(buf_str(&b), "piped");
    close(ends[0]);
    buf_fini(&b);
}

static void test_a_program_is_found_in_a_list_of_folders(void **state) {
    (void)state;
    assert_true(file_in_path("/nowhere:/bin", "sh"));
    assert_true(file_in_path("/bin:/nowhere", "sh"));
    assert_false(file_in_path("/nowhere", "sh"));
    assert_false(file_in_path("/etc", "passwd")); /* nobody may execute it */
    assert_false(file_in_path("", "sh"));
}

int main(int argc, char **argv) {
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_program_is_found_in_a_list_of_folders),
        cmocka_unit_test(test_what_was_written_atomically_is_read_back_and_nothing_is_beside_it),
        cmocka_unit_test(test_what_is_no_plain_file_is_written_into),
        cmocka_unit_test(test_a_write_into_a_missing_directory_names_the_path),
        cmocka_unit_test(test_a_file_longer_than_allowed_is_refused_and_leaves_the_buffer),
        cmocka_unit_test(test_the_own_folder_holds_the_running_program),
        cmocka_unit_test(test_the_last_lines_of_a_file_are_read_however_long_it_is),
        cmocka_unit_test(test_directories_are_made_along_a_path_and_a_file_in_the_way_is_named),
        cmocka_unit_test(test_what_is_for_a_while_goes_where_it_can_be_written),
        cmocka_unit_test(test_removing_a_tree_never_follows_a_link_out_of_it),
        cmocka_unit_test(test_what_is_no_plain_file_is_not_opened),
        cmocka_unit_test(test_a_descriptor_of_the_callers_own_is_taken_as_it_is),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
