#include "harness/plan/interpreter.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void assert_head(const char *head, const char *expected) {
    struct arena a = {0};
    const char *found = interpreter_of_head(&a, head);
    if (expected)
        assert_string_equal(found, expected);
    else
        assert_null(found);
    arena_fini(&a);
}

static void test_the_first_line_names_the_interpreter(void **state) {
    (void)state;
    assert_head("#!/usr/bin/python3.11\nimport sys\n", "/usr/bin/python3.11");
    assert_head("#! /venv/bin/python3 -s\n", "/venv/bin/python3");
    assert_head("#!/usr/bin/env python3\n", "python3");
    assert_head("#!/usr/bin/env -S pypy3 -u\n", "pypy3");
    assert_head("#!/bin/sh\n'''exec' \"/a long/bin/python3\" \"$0\" \"$@\"\n' '''\n",
                "/a long/bin/python3");
    assert_head("#!/bin/sh\n'''exec' /long/bin/python3 \"$0\" \"$@\"\n", "/long/bin/python3");
}

static void test_what_is_no_python_script_names_none(void **state) {
    (void)state;
    assert_head("", NULL);
    assert_head("\177ELF", NULL);
    assert_head("#!/bin/bash\nexec torchrun\n", NULL);
    assert_head("#!", NULL);
}

/* ---- with stand-ins for Python and torchrun ---- */

struct stand {
    char dir[64], path[4200];
    struct scenario s;
    struct plan p;
};

static void put(const struct stand *t, const char *name, const char *text) {
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", t->dir, name);
    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
    assert_int_equal(chmod(path, 0755), 0);
}

static int prepare(void **state) {
    static struct stand t;
    t = (struct stand){.dir = "/tmp/interpreter_XXXXXX"};
    assert_int_equal(file_make_temp_dir(t.dir, NULL), 0);
    snprintf(t.path, sizeof(t.path), "%s:/usr/bin:/bin", t.dir);
    setenv("PATH", t.path, 1);
    t.s.job.launcher = "torchrun";
    t.p.scenario = &t.s;
    t.p.backend = "c10d";
    *state = &t;
    return 0;
}

static int clean(void **state) {
    struct stand *t = *state;
    arena_fini(&t->p.arena);
    return file_remove_tree(t->dir, NULL);
}

static const char *const by_name[] = {"torchrun", NULL};
static const char *const by_python[] = {"python3", "-m", "torch.distributed.run", NULL};

/* A Python that answers as this one would. */
static void put_python(const struct stand *t, const char *answer) {
    char text[300];
    snprintf(text, sizeof(text), "#!/bin/sh\necho '%s'\n", answer);
    put(t, "python3", text);
}

static void test_an_old_torch_on_a_new_python_is_helped_over_its_defaults(void **state) {
    struct stand *t = *state;
    struct err err = {0};
    put_python(t, "python 3.11 torch 1.13.1 etcd 0");
    put(t, "torchrun", "#!/usr/bin/env python3\n");
    t->s.job.launcher_argv = by_name;
    assert_int_equal(plan_find_launcher(&t->p, &err), 0);
    assert_string_equal(t->p.python.torch, "1.13.1");
    assert_string_equal(t->p.launcher_quirks[0], "--redirects");
    assert_string_equal(t->p.launcher_quirks[2], "--tee");
    assert_non_null(strstr(t->p.launcher_note, "torch 1.13.1"));
}

static void test_what_the_user_says_himself_is_not_said_again(void **state) {
    static const char *const args[] = {"--tee=2", "-r", "1", NULL};
    struct stand *t = *state;
    struct err err = {0};
    put_python(t, "python 3.12 torch 1.13.1 etcd 0");
    t->s.job.launcher_argv = by_python;
    t->s.job.launcher_args = args;
    assert_int_equal(plan_find_launcher(&t->p, &err), 0);
    assert_null(t->p.launcher_quirks[0]);
    assert_null(t->p.launcher_note);
}

static void test_other_versions_are_left_alone(void **state) {
    static const char *const answers[] = {"python 3.10 torch 1.13.1 etcd 1",
                                          "python 3.13 torch 2.6.0 etcd 1", NULL};
    struct stand *t = *state;
    for (size_t i = 0; answers[i]; i++) {
        struct err err = {0};
        put_python(t, answers[i]);
        t->s.job.launcher_argv = by_python;
        t->p.launcher = NULL;
        assert_int_equal(plan_find_launcher(&t->p, &err), 0);
        assert_null(t->p.launcher_quirks);
    }
}

static void assert_lacks(struct stand *t, const char *part) {
    struct err err = {0};
    assert_int_equal(plan_find_launcher(&t->p, &err), -ENOENT);
    if (!strstr(err.msg, part))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, part);
}

static void test_a_python_without_torch_is_told_apart(void **state) {
    struct stand *t = *state;
    put_python(t, "python 3.11 torch - etcd 1");
    t->s.job.launcher_argv = by_python;
    assert_lacks(t, "has no module torch; install it there");
}

static void test_an_etcd_backend_needs_the_module_etcd(void **state) {
    struct stand *t = *state;
    put_python(t, "python 3.11 torch 2.6.0 etcd 0");
    t->s.job.launcher_argv = by_python;
    t->p.backend = "etcd-v2";
    assert_lacks(t, "needs the Python module etcd");
}

static void test_a_launcher_that_is_not_there_is_named(void **state) {
    static const char *const lost[] = {"/nowhere/torchrun", NULL};
    struct stand *t = *state;
    t->s.job.launcher_argv = lost;
    assert_lacks(t, "there is no program /nowhere/torchrun");
}

static void test_torchrun_without_its_script_is_started_as_a_module(void **state) {
    struct stand *t = *state;
    struct err err = {0};
    put_python(t, "python 3.11 torch 2.6.0 etcd 0");
    setenv("PATH", t->dir, 1); /* nothing else is there */
    t->s.job.launcher_argv = by_name;
    assert_int_equal(plan_find_launcher(&t->p, &err), 0);
    assert_string_equal(t->p.launcher[0], "python3");
    assert_string_equal(t->p.launcher[2], "torch.distributed.run");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, prepare, clean)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_line_names_the_interpreter),
        cmocka_unit_test(test_what_is_no_python_script_names_none),
        TEST(test_an_old_torch_on_a_new_python_is_helped_over_its_defaults),
        TEST(test_what_the_user_says_himself_is_not_said_again),
        TEST(test_other_versions_are_left_alone),
        TEST(test_a_python_without_torch_is_told_apart),
        TEST(test_an_etcd_backend_needs_the_module_etcd),
        TEST(test_a_launcher_that_is_not_there_is_named),
        TEST(test_torchrun_without_its_script_is_started_as_a_module),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
