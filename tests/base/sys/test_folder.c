#include "base/sys/folder.h"

#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

/* A folder that a stranger has prepared, and beside it what must not be touched. */
static char dir[64];
static struct folder folder;

static const char *in_dir(const char *name) {
    static char path[2][256];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
    return path[turn];
}

static int prepare(void **state) {
    (void)state;
    strcpy(dir, "/tmp/test_folder_XXXXXXXX");
    return file_make_temp_dir(dir, NULL) || file_make_dirs(in_dir("sent/logs"), 0777, NULL) ||
           file_make_dirs(in_dir("home"), 0777, NULL) ||
           file_write(in_dir("home/secret"), "secret\n", 7, NULL) ||
           symlink("../home/secret", in_dir("sent/file")) ||
           symlink("../home", in_dir("sent/dir")) ||
           symlink("../../home", in_dir("sent/logs/n0")) ||
           symlink("../home/new", in_dir("sent/dangling")) || mkfifo(in_dir("sent/fifo"), 0666) ||
           folder_open(&folder, in_dir("sent"), NULL);
}

static int forget(void **state) {
    (void)state;
    folder_close(&folder);
    return file_remove_tree(dir, NULL);
}

/* The whole of a file, as a string that lasts until the next. */
static const char *content(const char *path) {
    static char text[256];
    struct buf b = {0};
    if (file_read(path, sizeof(text) - 1, &b, NULL) != 0)
        return NULL;
    snprintf(text, sizeof(text), "%s", buf_str(&b));
    buf_fini(&b);
    return text;
}

static void untouched(void) {
    assert_string_equal(content(in_dir("home/secret")), "secret\n");
    assert_int_equal(access(in_dir("home/new"), F_OK), -1);
}

static void test_what_was_written_is_read_back_and_nothing_is_beside_it(void **state) {
    (void)state;
    struct buf b = {0};
    struct err err = {0};
    assert_int_equal(folder_make(&folder, "hang/n0", 0777, &err), 0);
    assert_int_equal(folder_make(&folder, "hang/n0", 0777, &err), 0);
    assert_int_equal(folder_write(&folder, "hang/n0/a", "one", 3, &err), 0);
    assert_int_equal(folder_write(&folder, "hang/n0/a", "two!", 4, &err), 0);
    assert_int_equal(folder_write_synced(&folder, "hang/n0/a", "three", 5, &err), 0);
    int fd = folder_append(&folder, "hang/n0/a", &err);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "!\n", 2), 2);
    close(fd);
    assert_int_equal(folder_read(&folder, "hang/n0/a", 100, &b, &err), 0);
    assert_string_equal(buf_str(&b), "three!\n");
    buf_clear(&b);
    assert_int_equal(folder_read_last(&folder, "hang/n0/a", 1, 100, &b, &err), 0);
    assert_string_equal(buf_str(&b), "three!\n");
    TEXTS_FINI struct texts names = {0};
    assert_int_equal(folder_list(&folder, "hang/n0", NULL, &names, &err), 0);
    assert_int_equal(names.n, 3); /* . and .. */
    assert_string_equal(names.v[2], "a");
    assert_int_equal(err.code, 0);
    assert_int_equal(folder_remove(&folder, "hang", &err), 0);
    assert_false(folder_has(&folder, "hang"));
    assert_int_equal(folder_remove(&folder, "hang", &err), 0);
    buf_fini(&b);
}

/* Every way to open, by the name of a link and by a name behind one. */
static int all_ways(const char *name, int way, struct err *err) {
    struct buf b = {0};
    struct folder in = FOLDER_NONE;
    TEXTS_FINI struct texts names = {0};
    int r = 0;
    switch (way) {
    case 0:
        r = folder_read(&folder, name, 100, &b, err);
        break;
    case 1:
        r = folder_read_last(&folder, name, 5, 100, &b, err);
        break;
    case 2:
        r = folder_write(&folder, name, "x", 1, err);
        break;
    case 3:
        r = folder_write_synced(&folder, name, "x", 1, err);
        break;
    case 4:
        r = folder_create(&folder, name, err);
        break;
    case 5:
        r = folder_append(&folder, name, err);
        break;
    case 6:
        r = folder_open_file(&folder, name, err);
        break;
    case 7:
        r = folder_make(&folder, name, 0777, err);
        break;
    case 8:
        r = folder_remove(&folder, name, err);
        break;
    case 9:
        r = folder_list(&folder, name, NULL, &names, err);
        break;
    case 10:
        r = folder_find(&folder, name, err);
        break;
    case 11:
        r = folder_open_growing(&folder, name, err);
        break;
    default:
        r = folder_enter(&in, &folder, name, err);
    }
    buf_fini(&b);
    return r;
}

static void test_a_link_is_refused_by_its_name_whatever_is_wanted_of_it(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"file", "sent/file is a symbolic link"},
        {"dangling", "sent/dangling is a symbolic link"},
        {"dir", "sent/dir is a symbolic link"},
        {"dir/secret", "sent/dir is a symbolic link"},
        {"logs/n0/secret", "sent/logs/n0 is a symbolic link"},
        {"logs/n0/new", "sent/logs/n0 is a symbolic link"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (int way = 0; way <= 12; way++) {
            struct err err = {0};
            assert_int_equal(all_ways(rows[i][0], way, &err), -ELOOP);
            assert_non_null(strstr(err.msg, rows[i][1]));
        }
    untouched();
}

static void test_a_fifo_and_a_directory_are_not_opened_as_a_file(void **state) {
    (void)state;
    for (int way = 0; way <= 6; way++) {
        struct err err = {0};
        assert_int_equal(all_ways("fifo", way, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "sent/fifo is a FIFO and no plain file"));
        assert_int_equal(all_ways("logs", way, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "sent/logs is a directory"));
    }
}

static void test_no_name_leads_out_of_the_folder(void **state) {
    (void)state;
    static const char *const names[] = {"../home/secret", "logs/../../home/secret", "..",
                                        "/etc/hostname", ""};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        for (int way = 0; way <= 12; way++) {
            struct err err = {0};
            assert_int_equal(all_ways(names[i], way, &err), -EINVAL);
        }
    assert_false(folder_has(&folder, "../home"));
    untouched();
}

static void test_a_file_with_a_second_name_is_replaced_and_never_added_to(void **state) {
    (void)state;
    struct err err = {0};
    assert_int_equal(link(in_dir("home/secret"), in_dir("sent/hard")), 0);
    assert_int_equal(folder_append(&folder, "hard", &err), -EMLINK);
    assert_non_null(strstr(err.msg, "sent/hard has a second name"));
    assert_int_equal(folder_write(&folder, "hard", "mine", 4, NULL), 0);
    assert_string_equal(content(in_dir("sent/hard")), "mine");
    untouched();
}

static void test_removal_takes_links_away_and_leaves_what_they_lead_to(void **state) {
    (void)state;
    struct err err = {0};
    assert_int_equal(folder_make(&folder, "scratch/deep/er", 0777, &err), 0);
    assert_int_equal(symlink("../../../home", in_dir("sent/scratch/deep/out")), 0);
    assert_int_equal(folder_remove(&folder, "scratch", &err), 0);
    assert_false(folder_has(&folder, "scratch"));
    untouched();
}

/* Deeper than there are descriptors, and than a path is long. */
static void test_removal_reaches_any_depth(void **state) {
    (void)state;
    struct err err = {0};
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 200;
    assert_int_equal(folder_make(&folder, "pit", 0777, &err), 0);
    int at = folder_find(&folder, "pit", &err);
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(mkdirat(at, "d", 0777), 0);
        int next = openat(at, "d", O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(at);
        at = next;
    }
    assert_int_equal(symlinkat("/etc", at, "out"), 0);
    close(at);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(folder_remove(&folder, "pit", &err), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_false(folder_has(&folder, "pit"));
}

static void test_another_directory_put_in_its_place_changes_nothing(void **state) {
    (void)state;
    struct err err = {0};
    assert_int_equal(rename(in_dir("sent"), in_dir("moved")), 0);
    assert_int_equal(symlink("home", in_dir("sent")), 0);
    assert_int_equal(folder_write(&folder, "new", "x", 1, &err), 0);
    assert_string_equal(content(in_dir("moved/new")), "x");
    untouched();
    assert_int_equal(unlink(in_dir("sent")), 0);
    assert_int_equal(rename(in_dir("moved"), in_dir("sent")), 0);
}

static void test_the_callers_own_link_to_a_folder_is_followed(void **state) {
    (void)state;
    struct folder latest = FOLDER_NONE;
    struct err err = {0};
    assert_int_equal(symlink("sent", in_dir("latest")), 0);
    assert_int_equal(folder_open(&latest, in_dir("latest"), &err), 0);
    assert_true(folder_has_directory(&latest, "logs"));
    assert_false(folder_has_directory(&latest, "dir"));
    assert_true(folder_has(&latest, "dir"));
    folder_close(&latest);
    folder_close(&latest);
    assert_int_equal(folder_open(&latest, in_dir("nowhere"), &err), -ENOENT);
    assert_non_null(strstr(err.msg, "nowhere"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_written_is_read_back_and_nothing_is_beside_it),
        cmocka_unit_test(test_a_link_is_refused_by_its_name_whatever_is_wanted_of_it),
        cmocka_unit_test(test_a_fifo_and_a_directory_are_not_opened_as_a_file),
        cmocka_unit_test(test_no_name_leads_out_of_the_folder),
        cmocka_unit_test(test_a_file_with_a_second_name_is_replaced_and_never_added_to),
        cmocka_unit_test(test_removal_takes_links_away_and_leaves_what_they_lead_to),
        cmocka_unit_test(test_removal_reaches_any_depth),
        cmocka_unit_test(test_another_directory_put_in_its_place_changes_nothing),
        cmocka_unit_test(test_the_callers_own_link_to_a_folder_is_followed),
    };
    return cmocka_run_group_tests(tests, prepare, forget);
}
