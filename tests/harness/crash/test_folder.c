/* States as directories: written, read again, and found to be the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "base/sys/file.h"
#include "harness/crash/folder.h"
#include "tests/harness/crash/record_maker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct made made;

/* Everything that there is: a hole, a second name, a link, modes, a file over several blocks. */
static void fill(void) {
    memset(&made, 0, sizeof(made));
    made_had_directory(&made, "old");
    made_had(&made, "old/model", 'A', 300000);
    made_mkdir(&made, "new");
    made.v[made.record.n - 1].mode = 0700;
    uint64_t f = made_create(&made, "new/model");
    made.v[made.record.n - 1].mode = 0600;
    made_write(&made, f, "new/model", 5, 100000, 'a');
    made_write(&made, f, "new/model", 400000, 70000, 'b');
    made_names(&made, DISK_LINK, "new/model", "new/second");
    made_names(&made, DISK_SYMLINK, "latest", "new");
    made_truncate(&made, 2, "old/model", 1000);
    made_names(&made, DISK_RENAME, "old/model", "new/third");
    made_names(&made, DISK_EXCHANGE, "new/third", "new/second");
    made_names(&made, DISK_RMDIR, "old", NULL);
}

static void find(struct crash_states *s) {
    struct err err = {0};
    struct crash_ask ask = {
        .record = &made.record, .models = DISK_MODELS_ALL, .per_point = 12, .states_max = 80};
    assert_int_equal(crash_states_find(&ask, s, &err), 0);
    assert_int_equal(s->ignored, 0);
}

static void make_folder(char *path) {
    struct err err = {0};
    strcpy(path, "/tmp/rankquake_XXXXXXXX");
    if (file_make_temp_dir(path, &err))
        fail_msg("%s", err.msg);
}

static void test_every_state_is_read_as_it_was_written(void **state) {
    struct crash_states s;
    struct err err = {0};
    char path[64], hash[65];
    (void)state;
    fill();
    find(&s);
    assert_true(s.n > 50);
    for (size_t i = 0; i < s.n; i++) {
        make_folder(path);
        if (crash_folder_write(&s, i, path, &err) || crash_folder_hash(path, hash, &err))
            fail_msg("%s", err.msg);
        assert_string_equal(hash, s.v[i].hash);
        assert_int_equal(file_remove_tree(path, &err), 0);
    }
    crash_states_fini(&s);
    made_drop(&made);
}

static void write_last(struct crash_states *s, char *path) {
    struct err err = {0};
    struct crash_way whole = {
        .point = made.record.n, .models = DISK_MODELS_ALL, .rank = -1, .node = ""};
    make_folder(path);
    size_t i = crash_states_add(s, &whole);
    assert_true(i < s->n);
    if (crash_folder_write(s, i, path, &err))
        fail_msg("%s", err.msg);
}

/* By the file system's own means, not by our hash. */
static void test_what_is_written_is_what_the_programs_had_done(void **state) {
    struct crash_states s;
    struct stat a, b;
    struct err err = {0};
    char path[64], to[16] = "", bytes[8];
    (void)state;
    fill();
    find(&s);
    write_last(&s, path);
    FILE_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY);
    assert_int_equal(readlinkat(dir, "latest", to, sizeof(to)), 3);
    assert_string_equal(to, "new");
    assert_int_equal(fstatat(dir, "new/model", &a, 0), 0);
    assert_int_equal(fstatat(dir, "new/third", &b, 0), 0);
    assert_true(a.st_ino == b.st_ino && a.st_nlink == 2 && a.st_size == 470000);
    assert_int_equal(a.st_mode & 0777, 0600);
    assert_int_equal(fstatat(dir, "new/second", &b, 0), 0);
    assert_int_equal(b.st_size, 1000);
    assert_true(fstatat(dir, "old", &b, 0) < 0 && errno == ENOENT);
    FILE_CLOSE int fd = openat(dir, "new/model", O_RDONLY);
    assert_int_equal(pread(fd, bytes, 2, 4), 2);
    assert_true(bytes[0] == 0 && bytes[1] == 'a');
    assert_int_equal(pread(fd, bytes, 2, 399999), 2);
    assert_true(bytes[0] == 0 && bytes[1] == 'b');
    assert_int_equal(file_remove_tree(path, &err), 0);
    crash_states_fini(&s);
    made_drop(&made);
}

static int64_t changed_ns(int dir, const char *name) {
    struct stat st;
    assert_int_equal(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

/* An hour between two operations: the newest file is what the job wrote last. */
static void test_files_are_as_old_as_their_last_change(void **state) {
    static const int64_t hour_ns = 3600LL * 1000000000;
    struct crash_states s;
    struct err err = {0};
    char path[64];
    (void)state;
    fill();
    for (size_t i = 0; i < made.record.n; i++)
        made.v[i].t_ns = (int64_t)(i + 1) * hour_ns;
    find(&s);
    write_last(&s, path);
    FILE_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY);
    int64_t model = changed_ns(dir, "new/model"); /* written by operation 5 */
    assert_int_equal((changed_ns(dir, "latest") - model) / hour_ns, 2);
    assert_int_equal((changed_ns(dir, "new/second") - model) / hour_ns, 3); /* truncated by 8 */
    assert_int_equal((changed_ns(dir, "new") - model) / hour_ns, 5);        /* exchanged by 10 */
    assert_int_equal(file_remove_tree(path, &err), 0);
    crash_states_fini(&s);
    made.v[0].t_ns = INT64_MIN; /* nobody knows of whom a record is */
    made.v[made.record.n - 1].t_ns = INT64_MAX;
    find(&s);
    write_last(&s, path);
    assert_int_equal(file_remove_tree(path, &err), 0);
    crash_states_fini(&s);
    made_drop(&made);
}

static void test_any_change_of_a_directory_changes_its_hash(void **state) {
    struct crash_states s;
    struct err err = {0};
    char path[64], was[65], is[65];
    (void)state;
    fill();
    find(&s);
    write_last(&s, path);
    assert_int_equal(crash_folder_hash(path, was, &err), 0);
    FILE_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY);
    FILE_CLOSE int fd = openat(dir, "new/model", O_WRONLY);
    assert_int_equal(pwrite(fd, "x", 1, 200000), 1); /* into the hole */
    assert_int_equal(crash_folder_hash(path, is, &err), 0);
    assert_string_not_equal(was, is);
    assert_int_equal(pwrite(fd, "", 1, 200000), 1); /* a zero is a zero, be it told or not */
    assert_int_equal(crash_folder_hash(path, is, &err), 0);
    assert_string_equal(was, is);
    assert_int_equal(fchmod(fd, 0640), 0);
    assert_int_equal(crash_folder_hash(path, is, &err), 0);
    assert_string_not_equal(was, is);
    assert_int_equal(file_remove_tree(path, &err), 0);
    crash_states_fini(&s);
    made_drop(&made);
}

static void test_a_directory_that_is_not_empty_is_refused(void **state) {
    struct crash_states s;
    struct err err = {0};
    char path[64];
    (void)state;
    fill();
    find(&s);
    write_last(&s, path);
    assert_int_equal(crash_folder_write(&s, 0, path, &err), -ENOTEMPTY);
    assert_non_null(strstr(err.msg, path));
    assert_int_equal(file_remove_tree(path, &err), 0);
    crash_states_fini(&s);
    made_drop(&made);
}

static void test_what_is_no_file_is_refused(void **state) {
    struct err err = {0};
    char path[64], hash[65];
    (void)state;
    make_folder(path);
    FILE_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY);
    assert_int_equal(mkfifoat(dir, "pipe", 0600), 0);
    assert_int_equal(crash_folder_hash(path, hash, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "/pipe is neither"));
    assert_int_equal(file_remove_tree(path, &err), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_state_is_read_as_it_was_written),
        cmocka_unit_test(test_what_is_written_is_what_the_programs_had_done),
        cmocka_unit_test(test_files_are_as_old_as_their_last_change),
        cmocka_unit_test(test_any_change_of_a_directory_changes_its_hash),
        cmocka_unit_test(test_a_directory_that_is_not_empty_is_refused),
        cmocka_unit_test(test_what_is_no_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
