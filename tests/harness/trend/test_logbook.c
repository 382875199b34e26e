/* The trend file: nothing that was added is lost, wherever it was cut off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "base/sys/file.h"
#include "harness/trend/logbook.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

struct fixture {
    char dir[64], file[PATH_MAX];
};

static int begin(void **state) {
    static struct fixture f;
    f = (struct fixture){.dir = "/tmp/rq-logbook-XXXXXX"};
    assert_int_equal(file_make_temp_dir(f.dir, NULL), 0);
    snprintf(f.file, sizeof(f.file), "%s/trend.jsonl", f.dir);
    *state = &f;
    return 0;
}

static int end(void **state) {
    return file_remove_tree(((struct fixture *)*state)->dir, NULL);
}

static const struct trend_measure measures[] = {{"job", 812.5}, {"kill/recover", 61.25}};

static struct trend_entry entry(const char *id, int64_t time_ns) {
    return (struct trend_entry){.id = id,
                                .time_ns = time_ns,
                                .origin = {"c0ffee", "main", "m x 2"},
                                .scenario = "worker-killed",
                                .launcher = "rankrun",
                                .version = "1",
                                .check = "",
                                .calibration_ms = 1.5,
                                .v = measures,
                                .n = 2};
}

static size_t add(const char *path, const char *id, int64_t time_ns) {
    struct trend_entry e = entry(id, time_ns);
    struct err err = {0};
    size_t added = 99;
    if (logbook_add(path, &e, 1, &added, &err) < 0)
        fail_msg("%s", err.msg);
    return added;
}

static void read_it(struct logbook *l, const char *path) {
    struct err err = {0};
    if (logbook_read(l, path, &err) < 0)
        fail_msg("%s", err.msg);
}

static void test_what_was_added_is_read_back_in_order_of_time(void **state) {
    struct fixture *f = *state;
    struct logbook l;
    assert_int_equal(add(f->file, "b", 20), 1);
    assert_int_equal(add(f->file, "a", 10), 1);
    assert_int_equal(add(f->file, "b", 20), 0); /* the same run */
    read_it(&l, f->file);
    assert_int_equal(l.n, 2);
    assert_int_equal(l.damaged.n, 0);
    assert_string_equal(l.v[0]->id, "a");
    assert_string_equal(l.v[1]->origin.machine, "m x 2");
    assert_true(trend_entry_measure(l.v[1], "kill/recover") == 61.25);
    assert_true(trend_entry_measure(l.v[1], "none") != trend_entry_measure(l.v[1], "none"));
    logbook_fini(&l);
}

/* At every byte of the last line: the others are there, the cut one is named or whole, and what is
 * added next is there. */
static void test_a_file_that_is_cut_anywhere_loses_what_was_cut_alone(void **state) {
    struct fixture *f = *state;
    BUF_FINI struct buf whole = {0};
    add(f->file, "a", 10);
    add(f->file, "b", 20);
    assert_int_equal(file_read(f->file, 1 << 20, &whole, NULL), 0);
    size_t first = (size_t)((char *)memchr(whole.data, '\n', whole.len) - whole.data) + 1;
    for (size_t cut = first + 1; cut < whole.len; cut++) {
        struct logbook l;
        char where[PATH_MAX + 16];
        bool all = cut == whole.len - 1; /* its end alone is missing */
        assert_int_equal(file_write(f->file, whole.data, cut, NULL), 0);
        read_it(&l, f->file);
        assert_int_equal(l.n, all ? 2 : 1);
        assert_int_equal(l.damaged.n, all ? 0 : 1);
        snprintf(where, sizeof(where), "%s:2", f->file);
        assert_true(all || str_starts(l.damaged.v[0], where));
        logbook_fini(&l);
        assert_int_equal(add(f->file, "c", 30), 1);
        read_it(&l, f->file);
        assert_int_equal(l.n, all ? 3 : 2);
        assert_string_equal(l.v[l.n - 1]->id, "c");
        logbook_fini(&l);
    }
}

static void test_lines_that_are_no_entries_are_named(void **state) {
    struct fixture *f = *state;
    static const char lines[] = "{\"v\":2,\"id\":\"x\"}\nnothing\n[]\n\n{\"v\":1,\"id\":\"x\"}\n";
    struct logbook l;
    assert_int_equal(file_write(f->file, lines, sizeof(lines) - 1, NULL), 0);
    assert_int_equal(add(f->file, "a", 1), 1);
    read_it(&l, f->file);
    assert_int_equal(l.n, 1);
    assert_int_equal(l.damaged.n, 4);
    assert_non_null(strstr(l.damaged.v[0], ":1 is of version 2"));
    assert_non_null(strstr(l.damaged.v[1], ":2 is no whole entry"));
    assert_non_null(strstr(l.damaged.v[2], ":3 is no whole entry"));
    assert_non_null(strstr(l.damaged.v[3], ":5 has no text \"commit\""));
    logbook_fini(&l);
}

static void test_a_directory_holds_an_entry_in_each_file(void **state) {
    struct fixture *f = *state;
    char dir[PATH_MAX], torn[PATH_MAX + 16];
    struct logbook l;
    snprintf(dir, sizeof(dir), "%s/trend/", f->dir);
    assert_int_equal(add(dir, "b", 20), 1);
    assert_int_equal(add(dir, "a", 10), 1);
    assert_int_equal(add(dir, "a", 10), 0);
    snprintf(torn, sizeof(torn), "%s/5-torn.json", dir);
    assert_int_equal(file_write(torn, "{\"v\":1,", 7, NULL), 0);
    read_it(&l, dir);
    assert_int_equal(l.n, 2);
    assert_int_equal(l.damaged.n, 1);
    assert_non_null(strstr(l.damaged.v[0], "5-torn.json"));
    assert_string_equal(l.v[0]->id, "a");
    logbook_fini(&l);
}

static void test_what_cannot_be_written_is_said(void **state) {
    struct fixture *f = *state;
    struct trend_entry e = entry("a", 1);
    struct err err = {0};
    struct logbook l;
    size_t added;
    assert_int_equal(logbook_read(&l, f->file, &err), -ENOENT);
    err = (struct err){0};
    assert_int_equal(logbook_add("/dev/null", &e, 1, &added, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "/dev/null"));
    err = (struct err){0};
    assert_int_equal(logbook_add("/dev/full/x", &e, 1, &added, &err), -ENOTDIR);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_was_added_is_read_back_in_order_of_time, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_a_file_that_is_cut_anywhere_loses_what_was_cut_alone,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_lines_that_are_no_entries_are_named, begin, end),
        cmocka_unit_test_setup_teardown(test_a_directory_holds_an_entry_in_each_file, begin, end),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_written_is_said, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
