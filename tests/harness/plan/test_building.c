/* What job.build is made of: its inputs and its key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/plan/building.h"

#include "base/sys/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/building.XXXXXX";

static void put(const char *path, const char *text) {
    assert_int_equal(file_write_atomic(path, text, strlen(text), NULL), 0);
}

static int set_up(void **state) {
    static bool there;
    if (!there && (!mkdtemp(dir) || chdir(dir) < 0))
        return -1;
    there = true;
    mkdir("src", 0777);
    put("src/a.c", "int a;");
    put("src/b.c", "int b;");
    put("Makefile", "all:");
    unlink("src/c.c");
    chmod("src/a.c", 0644);
    return 0;
}

static const char *const run[] = {"make", "train", NULL},
                         *const inputs[] = {"src/*.c", "Makefile", NULL},
                         *const outputs[] = {"out/train", NULL};
static const struct build_spec plain = {
    .run = run, .run_n = 2, .inputs = inputs, .inputs_n = 2, .outputs = outputs, .outputs_n = 1};

static void key(const struct build_spec *b, char ret[65]) {
    struct err err = {0};
    assert_int_equal(building_key(b, ret, &err), 0);
}

static void assert_other(const struct build_spec *b, const char *before) {
    char now[65];
    key(b, now);
    assert_string_not_equal(now, before);
}

static void test_a_key_is_the_same_for_the_same(void **state) {
    char a[65], b[65];
    key(&plain, a);
    key(&plain, b);
    assert_string_equal(a, b);
    assert_int_equal(strlen(a), 64);
}

static void test_whatever_it_is_made_of_makes_another_key(void **state) {
    char before[65];
    struct build_spec other = plain;
    key(&plain, before);
    put("src/a.c", "int A;");
    assert_other(&plain, before);
    put("src/a.c", "int a;");
    chmod("src/a.c", 0755);
    assert_other(&plain, before);
    chmod("src/a.c", 0644);
    put("src/c.c", "");
    assert_other(&plain, before);
    unlink("src/c.c");
    assert_int_equal(rename("src/b.c", "src/c.c"), 0); /* the same content by another name */
    assert_other(&plain, before);
    assert_int_equal(rename("src/c.c", "src/b.c"), 0);
    other.run = (const char *const[]){"make", "-j", "train", NULL};
    other.run_n = 3;
    assert_other(&other, before);
    other = plain;
    other.outputs = (const char *const[]){"train", NULL};
    assert_other(&other, before);
    setenv("CFLAGS", "-O3", 1);
    assert_other(&plain, before);
    unsetenv("CFLAGS");
    char again[65];
    key(&plain, again);
    assert_string_equal(again, before);
}

/* Words do not run into one another: [a, bc] is not [ab, c]. */
static void test_words_are_told_apart(void **state) {
    struct build_spec a = plain, b = plain;
    char one[65];
    a.run = (const char *const[]){"a", "bc", NULL};
    b.run = (const char *const[]){"ab", "c", NULL};
    key(&a, one);
    assert_other(&b, one);
}

static void test_a_folder_is_all_that_lies_in_it_but_what_is_built(void **state) {
    struct build_spec b = plain;
    TEXTS_FINI struct texts found = {0};
    b.inputs = (const char *const[]){"./src", "src/a.c", "src", NULL};
    b.inputs_n = 3;
    b.outputs = (const char *const[]){"src/b.c", NULL};
    mkdir("src/deep", 0777);
    put("src/deep/d.h", "");
    put("src/.hidden", "");
    assert_int_equal(building_inputs(&b, &found, NULL), 0);
    assert_int_equal(found.n, 2);
    assert_string_equal(found.v[0], "src/a.c");
    assert_string_equal(found.v[1], "src/deep/d.h");
    unlink("src/deep/d.h");
    rmdir("src/deep");
}

static void test_what_is_not_there_is_named(void **state) {
    struct build_spec b = plain;
    struct err err = {0};
    char none[65];
    b.inputs = (const char *const[]){"src/*.h", NULL};
    b.inputs_n = 1;
    assert_int_equal(building_key(&b, none, &err), -ENOENT);
    assert_non_null(strstr(err.msg, "there is no file src/*.h"));
    mkfifo("pipe", 0600);
    b.inputs = (const char *const[]){"pipe", NULL};
    err = (struct err){0};
    assert_int_equal(building_key(&b, none, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "pipe is neither a file nor a folder"));
    unlink("pipe");
}

static void test_outputs_are_known_by_their_names(void **state) {
    assert_true(building_makes(&plain, "out/train"));
    assert_true(building_makes(&plain, "./out/train"));
    assert_false(building_makes(&plain, "train"));
    assert_false(building_makes(&(struct build_spec){0}, "train"));
}

static int tear_down(void **state) {
    return system("rm -rf /tmp/building.??????") ? -1 : 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_key_is_the_same_for_the_same, set_up),
        cmocka_unit_test_setup(test_whatever_it_is_made_of_makes_another_key, set_up),
        cmocka_unit_test_setup(test_words_are_told_apart, set_up),
        cmocka_unit_test_setup(test_a_folder_is_all_that_lies_in_it_but_what_is_built, set_up),
        cmocka_unit_test_setup(test_what_is_not_there_is_named, set_up),
        cmocka_unit_test_setup(test_outputs_are_known_by_their_names, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
