/* What a command line names: files, folders, suites. */
#include "harness/play/files.h"

#include "base/buf.h"
#include "base/str.h"
#include "harness/verbs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[200];

static void write_file(const char *name, const char *text) {
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int make_folder(void **state) {
    (void)state;
    char path[300];
    const char *dir = getenv("TMPDIR");
    snprintf(folder, sizeof(folder), "%s/files-XXXXXX", dir ? dir : "/tmp");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/sub", folder);
    mkdir(path, 0777);
    write_file("a.yaml", "job: {run: [a]}\n");
    write_file("_base.yaml", "job: {run: [a]}\n");
    write_file("sub/b.yaml", "job: {run: [b]}\n");
    write_file("sub/_b.yaml", "job: {run: [b]}\n");
    write_file("inner.yaml", "suite: [sub]\n");
    write_file("outer.yaml", "suite: [a.yaml, inner.yaml, _base.yaml]\n");
    write_file("round.yaml", "suite: [round.yaml]\n");
    return 0;
}

/* The files that a path of the folder comes to, without the folder, "a b c". */
static int list(const char *name, struct buf *ret) {
    char path[300];
    struct scenario_files f = {0};
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int r = files_add(&f, verb_find("lint"), path);
    for (size_t i = 0; i < f.n; i++)
        buf_printf(ret, "%s%s", i ? " " : "", f.v[i] + strlen(folder) + 1);
    files_fini(&f);
    return r;
}

static void assert_lists(const char *name, const char *want) {
    struct buf got = {0};
    assert_int_equal(list(name, &got), 0);
    assert_string_equal(buf_str(&got), want);
    buf_fini(&got);
}

static void test_a_suite_stands_for_files_folders_and_suites(void **state) {
    (void)state;
    assert_lists("outer.yaml", "a.yaml sub/b.yaml _base.yaml");
    assert_lists("a.yaml", "a.yaml");
}

static void test_a_folder_leaves_out_suites_and_what_is_only_included(void **state) {
    (void)state;
    assert_lists("sub", "sub/b.yaml");
}

static void test_a_suite_that_names_itself_ends(void **state) {
    (void)state;
    struct buf got = {0};
    assert_int_equal(list("round.yaml", &got), EXIT_USAGE_ERROR);
    buf_fini(&got);
}

/* It leads back into the folder here, and to anywhere in one of somebody else's. */
static void test_links_of_a_folder_to_folders_are_not_followed(void **state) {
    (void)state;
    char link[300];
    struct buf got = {0};
    snprintf(link, sizeof(link), "%s/sub/round.yaml", folder);
    assert_int_equal(symlink(".", link), 0);
    assert_int_equal(list("sub", &got), 0);
    assert_string_equal(buf_str(&got),
                        "sub/b.yaml sub/round.yaml"); /* which is no file: told then */
    unlink(link);
    buf_fini(&got);
}

static void test_a_suite_leads_nowhere_else_unless_it_is_trusted(void **state) {
    (void)state;
    char path[300];
    struct scenario_files strange = {0}, own = {.trusted = true};
    write_file("out.yaml", "suite: [/usr]\n");
    snprintf(path, sizeof(path), "%s/out.yaml", folder);
    assert_int_equal(files_add(&strange, verb_find("lint"), path), EXIT_USAGE_ERROR);
    write_file("out.yaml", "suite: [a.yaml]\n");
    assert_int_equal(files_add(&strange, verb_find("lint"), path), 0);
    assert_string_equal(strange.within[0], folder);
    assert_int_equal(files_add(&own, verb_find("run"), path), 0);
    assert_null(own.within[0]);
    unlink(path);
    files_fini(&strange);
    files_fini(&own);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_suite_stands_for_files_folders_and_suites),
        cmocka_unit_test(test_a_folder_leaves_out_suites_and_what_is_only_included),
        cmocka_unit_test(test_a_suite_that_names_itself_ends),
        cmocka_unit_test(test_links_of_a_folder_to_folders_are_not_followed),
        cmocka_unit_test(test_a_suite_leads_nowhere_else_unless_it_is_trusted),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, make_folder, NULL);
}
