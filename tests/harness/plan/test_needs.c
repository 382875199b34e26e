/* A job of Python's is skipped where its interpreter lacks a module. */
#include "harness/plan/interpreter.h"

#include "base/sys/file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char dir[] = "/tmp/needs_XXXXXX", python[64];

/* An interpreter that has one module: it looks for its name in the script it is given. */
static int set_up(void **state) {
    (void)state;
    static const char fake[] =
        "#!/bin/sh\n"
        "case $2 in *\"'made_up'\"*) echo; echo a library speaks; echo yes ;;\n"
        "*\"'torn.part'\"*) echo fails it is torn ;; *) echo no ;; esac\n";
    if (!mkdtemp(dir))
        return -1;
    snprintf(python, sizeof(python), "%s/python3", dir);
    if (file_write(python, fake, strlen(fake), NULL) != 0)
        return -1;
    return chmod(python, 0755);
}

static int tear_down(void **state) {
    (void)state;
    return file_remove_tree(dir, NULL);
}

static int needs(const char *const *run, const char *const *launcher, const char *module,
                 struct err *err) {
    const char *const modules[] = {module, NULL};
    struct scenario s = {
        .job = {.run = run, .run_n = 1, .needs = modules, .needs_n = 1, .launcher_argv = launcher}};
    struct plan p = {.scenario = &s};
    return needs_check(&p, err);
}

static void test_a_module_that_the_jobs_python_lacks_is_named(void **state) {
    (void)state;
    struct err err = {0};
    const char *const run[] = {python, NULL};
    assert_int_equal(needs(run, NULL, "made_up", &err), 0);
    assert_int_equal(needs(run, NULL, "torch", &err), -ENOTSUP);
    assert_non_null(strstr(err.msg, "job.needs: /tmp/needs_"));
    assert_non_null(strstr(err.msg, "has no module torch; install it there"));
}

static void test_a_module_that_cannot_be_imported_is_told_with_the_reason(void **state) {
    (void)state;
    struct err err = {0};
    const char *const run[] = {python, NULL};
    assert_int_equal(needs(run, NULL, "torn.part", &err), -ENOTSUP);
    assert_non_null(strstr(err.msg, "cannot import torn.part: it is torn; a newer version"));
}

static void test_the_launchers_python_is_asked_when_it_names_one(void **state) {
    (void)state;
    struct err err = {0};
    const char *const run[] = {"train.py", NULL};
    const char *const launcher[] = {python, "-m", "torch.distributed.run", NULL};
    assert_int_equal(needs(run, launcher, "made_up", &err), 0);
    assert_int_equal(needs(run, launcher, "torch", &err), -ENOTSUP);
}

static void test_a_program_that_is_no_python_needs_none(void **state) {
    (void)state;
    struct err err = {0};
    const char *const run[] = {"ranktrain", NULL};
    assert_int_equal(needs(run, NULL, "torch", &err), 0);
}

static void test_what_is_no_name_of_a_module_is_refused(void **state) {
    (void)state;
    struct err err = {0};
    const char *const run[] = {python, NULL};
    assert_int_equal(needs(run, NULL, "os'); print('yes", &err), -ENOENT);
    assert_int_equal(needs(run, NULL, "", &err), -ENOENT);
}

static void test_an_interpreter_that_cannot_be_started_has_nothing(void **state) {
    (void)state;
    struct err err = {0};
    const char *const run[] = {"/no/python3", NULL};
    assert_int_equal(needs(run, NULL, "made_up", &err), -ENOTSUP);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_module_that_the_jobs_python_lacks_is_named),
        cmocka_unit_test(test_a_module_that_cannot_be_imported_is_told_with_the_reason),
        cmocka_unit_test(test_the_launchers_python_is_asked_when_it_names_one),
        cmocka_unit_test(test_a_program_that_is_no_python_needs_none),
        cmocka_unit_test(test_what_is_no_name_of_a_module_is_refused),
        cmocka_unit_test(test_an_interpreter_that_cannot_be_started_has_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
