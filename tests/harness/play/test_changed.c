/* Which scenarios a change concerns, by the record of what a control run has opened. */
#include "harness/play/changed.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

/* The repository lies in folder/top, and everybody stands in folder/top/here. */
static char folder[200], top[210];
static struct arena arena;

static void write_file(const char *name, const char *text) {
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", top, name);
    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
}

static int make_tree(void **state) {
    (void)state;
    char path[300], target[300];
    const char *dir = getenv("TMPDIR");
    snprintf(folder, sizeof(folder), "%s/changed-XXXXXX", dir ? dir : "/tmp");
    if (!mkdtemp(folder))
        return -1;
    snprintf(top, sizeof(top), "%s/top", folder);
    static const char *const folders[] = {"", "/.git", "/here", "/src", "/other"};
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
        snprintf(path, sizeof(path), "%s%s", top, folders[i]);
        if (mkdir(path, 0777) != 0)
            return -1;
    }
    write_file("src/model.py", "1");
    write_file("src/log", "1");
    write_file("src/unread.py", "1");
    write_file("other/one", "1");
    snprintf(path, sizeof(path), "%s/other/link", top);
    snprintf(target, sizeof(target), "%s/src/model.py", top);
    if (symlink(target, path) != 0)
        return -1;
    snprintf(path, sizeof(path), "%s/here", top);
    return chdir(path);
}

static int remove_tree(void **state) {
    (void)state;
    arena_fini(&arena);
    return chdir("/") == 0 ? file_remove_tree(folder, NULL) : -1;
}

static const struct json *record_of(const char *fields) {
    char mark[READS_MARK];
    reads_mark(top, "src/model.py", mark);
    const char *text = arena_printf(
        &arena,
        "{\"top\":\"%s\",\"here\":\"%s/here\",\"repository\":true,\"files\":[{\"path\":\"src/"
        "model.py\",\"mark\":\"%s\"},{\"path\":\"src/log\"}],\"folders\":[{\"path\":\"src\","
        "\"names\":[\"gone.py\",\"log\",\"model.py\",\"unread.py\"]}],\"links\":[\"was\"]%s}",
        top, top, mark, fields);
    const struct json *j = json_parse(&arena, text, strlen(text), NULL);
    assert_non_null(j);
    return j;
}

/* NULL: it is left out. */
static const char *reason(const char *name, bool *ret_stale) {
    struct changed_names c = {0};
    if (name)
        assert_int_equal(changed_add(&c, name, NULL), 0);
    assert_int_equal(reads_tree_find(&c.tree, NULL), 0);
    const char *why = changed_reason(&c, record_of(""), &arena, ret_stale);
    changed_fini(&c);
    return why;
}

static void test_each_change_is_read_or_not(void **state) {
    (void)state;
    static const struct {
        const char *name, *why; /* NULL: left out */
        bool stale;
    } rows[] = {
        {NULL, NULL, false},
        {"src/model.py", "its job reads src/model.py", false},
        {"../src/model.py", "its job reads src/model.py", false},
        {"./src//../src/model.py", "its job reads src/model.py", false},
        {"src", "its job reads src/model.py", false}, /* a submodule */
        {"src/log", "its job reads src/log", false},
        {"src/unread.py", NULL, false},
        {"other/one", NULL, false},
        {"other/never.py", NULL, false},
        {"src/gone.py", "src/gone.py has gone from src, a folder of which", true},
        {"other/link", "other/link is a link", false},
        {"was", "was is a link", false},
        {"/etc/hosts", "/etc/hosts lies outside of ", false},
        {"srcs/model.py", NULL, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        bool stale = !rows[i].stale;
        const char *why = reason(rows[i].name, &stale);
        if (!rows[i].why ? why != NULL : !why || !str_starts(why, rows[i].why))
            fail_msg("%s: %s, not %s", rows[i].name, why, rows[i].why);
        assert_int_equal(stale, rows[i].stale);
    }
}

static void test_what_has_come_beside_what_is_read_may_be_read(void **state) {
    (void)state;
    bool stale = false;
    write_file("src/new.py", "1");
    assert_string_equal(reason("src/new.py", &stale),
                        "src/new.py has come into src, a folder of which its job reads something");
    assert_true(stale);
    write_file("other/new.py", "1");
    assert_null(reason("other/new.py", &stale));
}

static void test_what_is_not_as_it_was_read_runs_unnamed(void **state) {
    (void)state;
    struct changed_names c = {0};
    bool stale = false;
    const struct json *record = record_of("");
    assert_int_equal(reads_tree_find(&c.tree, NULL), 0);
    write_file("src/log", "2"); /* the job writes it itself */
    assert_null(changed_reason(&c, record, &arena, &stale));
    write_file("src/model.py", "2");
    assert_string_equal(changed_reason(&c, record, &arena, &stale),
                        "src/model.py is not as its control run has read it");
    assert_true(stale);
    assert_int_equal(changed_add(&c, "src/model.py", NULL), 0);
    assert_string_equal(changed_reason(&c, record, &arena, &stale), "its job reads src/model.py");
    assert_true(stale);
    changed_fini(&c);
}

static void test_what_is_not_known_runs(void **state) {
    (void)state;
    struct changed_names c = {0};
    bool stale = false;
    assert_int_equal(reads_tree_find(&c.tree, NULL), 0);
    assert_string_equal(c.tree.top, top);
    assert_true(c.tree.repository);
    assert_non_null(changed_reason(&c, NULL, &arena, &stale));
    assert_true(stale);
    assert_string_equal(changed_reason(&c, record_of(",\"unknown\":\"too large\""), &arena, &stale),
                        "what its job reads could not be seen: too large");
    assert_false(stale); /* it would be seen no better again */
    str_copy(c.tree.here, sizeof(c.tree.here), top);
    assert_true(str_starts(changed_reason(&c, record_of(""), &arena, &stale),
                           "what its job reads was seen from elsewhere"));
    assert_true(stale);
}

/* ---- names ---- */

static int read_names(struct changed_names *c, const char *text, size_t n, struct err *err) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, n), n);
    close(ends[1]);
    int r = changed_read(c, ends[0], err);
    close(ends[0]);
    return r;
}

static void test_names_are_read_as_git_prints_them(void **state) {
    (void)state;
    static const char lines[] = "a b.py\r\n\n\"d\\303\\244\\t\\\"x\\\\.py\"\nlast",
                      nul[] = "a\nb\0\"c\"\0";
    struct changed_names c = {0};
    assert_int_equal(read_names(&c, lines, sizeof(lines) - 1, NULL), 0);
    assert_int_equal(c.names.n, 3);
    assert_string_equal(c.names.v[0], "a b.py");
    assert_string_equal(c.names.v[1], "d\303\244\t\"x\\.py");
    assert_string_equal(c.names.v[2], "last");
    changed_fini(&c);
    c = (struct changed_names){0};
    assert_int_equal(read_names(&c, nul, sizeof(nul) - 1, NULL), 0);
    assert_int_equal(c.names.n, 2);
    assert_string_equal(c.names.v[0], "a\nb");
    assert_string_equal(c.names.v[1], "\"c\"");
    changed_fini(&c);
}

static void test_no_name_is_none_changed(void **state) {
    (void)state;
    struct changed_names c = {0};
    assert_int_equal(read_names(&c, "", 0, NULL), 0);
    assert_true(c.asked);
    assert_int_equal(c.names.n, 0);
}

static void test_bad_names_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"\"open", "\"a\\9\"", "\"a\" b", "\"\\400\"", "\"", "\"\""};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct changed_names c = {0};
        struct err err = {0};
        if (read_names(&c, bad[i], strlen(bad[i]), &err) != -EINVAL)
            fail_msg("%s was taken", bad[i]);
        assert_true(str_starts(err.msg, "standard input:1: "));
        changed_fini(&c);
    }
    struct changed_names c = {0};
    char *text = arena_alloc(&arena, PATH_MAX + 100);
    memset(text, 'a', PATH_MAX + 10);
    assert_int_equal(changed_add(&c, "", NULL), -EINVAL);
    assert_int_equal(changed_add(&c, text, NULL), -EINVAL);
    assert_int_equal(read_names(&c, text, strlen(text), NULL), -EINVAL);
    changed_fini(&c);
}

int main(void) {
#define IN_TREE(t) cmocka_unit_test_setup_teardown(t, make_tree, remove_tree)
    const struct CMUnitTest tests[] = {
        IN_TREE(test_each_change_is_read_or_not),
        IN_TREE(test_what_has_come_beside_what_is_read_may_be_read),
        IN_TREE(test_what_is_not_as_it_was_read_runs_unnamed),
        IN_TREE(test_what_is_not_known_runs),
        cmocka_unit_test(test_names_are_read_as_git_prints_them),
        cmocka_unit_test(test_no_name_is_none_changed),
        IN_TREE(test_bad_names_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
