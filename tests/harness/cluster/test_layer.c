/* What a job writes where the harness was started is undone: by a layer where one can be mounted,
 * else in a copy. */
#include "harness/cluster/layer.h"

#include "base/buf.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char top[200], home[300], runs[400];

static void write_text(const char *path, const char *text) {
    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
}

static void assert_text(const char *path, const char *text) {
    struct buf b = {0};
    struct err err = {0};
    if (file_read(path, 1000, &b, &err) != 0)
        fail_msg("%s", err.msg);
    assert_string_equal(buf_str(&b), text);
    buf_fini(&b);
}

static int set_up(void **state) {
    (void)state;
    const char *dir = getenv("TMPDIR");
    snprintf(top, sizeof(top), "%s/layer-XXXXXX", dir ? dir : "/tmp");
    assert_non_null(mkdtemp(top));
    snprintf(home, sizeof(home), "%s/my job", top);
    snprintf(runs, sizeof(runs), "%s/runs/one", home);
    assert_int_equal(file_make_dirs(runs, 0755, NULL), 0);
    assert_int_equal(chdir(home), 0);
    write_text("train.py", "print(1)");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    assert_int_equal(chdir("/"), 0);
    return file_remove_tree(top, NULL);
}

/* What a job does to its directory, and the harness to its own. */
static void use_it(void) {
    char path[500];
    assert_text("train.py", "print(1)");
    write_text("train.py", "print(2)");
    write_text("snapshot.pt", "new");
    assert_text("train.py", "print(2)");
    snprintf(path, sizeof(path), "%s/history", runs);
    write_text(path, "kept");
}

static void assert_undone(void) {
    assert_text("train.py", "print(1)");
    assert_false(file_exists("snapshot.pt"));
    assert_text("runs/one/history", "kept");
}

static void test_a_copy_is_used_and_forgotten(void **state) {
    (void)state;
    struct layer *l = NULL;
    char scratch[500], cwd[500];
    struct err err = {0};
    snprintf(scratch, sizeof(scratch), "%s/scratch", runs);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(layer_copy(scratch, runs, &l, &err), 0);
        assert_false(file_exists("runs"));
        use_it();
        l = layer_end(l);
        assert_string_equal(getcwd(cwd, sizeof(cwd)), home);
        assert_undone();
        assert_int_equal(file_remove_tree(scratch, NULL), 0);
    }
}

static void test_a_directory_with_too_many_files_is_refused_with_the_fix(void **state) {
    (void)state;
    struct layer *l = NULL;
    char scratch[500];
    struct err err = {0};
    snprintf(scratch, sizeof(scratch), "%s/scratch", runs);
    assert_int_equal(truncate("train.py", 600L << 20), 0);
    assert_int_equal(layer_copy(scratch, runs, &l, &err), -ENOTSUP);
    assert_non_null(strstr(err.msg, "--set job.writes=kept"));
    assert_null(l);
}

/* Mounts are made in a process of their own, which says by its status how it went. */
static void in_a_child(void (*fn)(void)) {
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        fn();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void layered(void) {
    struct layer *l = NULL;
    char scratch[500];
    snprintf(scratch, sizeof(scratch), "%s/scratch", runs);
    for (int i = 0; i < 2; i++) {
        if (layer_begin(scratch, runs, &l, NULL) != 0)
            _exit(10);
        use_it();
        if (!file_exists("runs/one/history"))
            _exit(11);
        l = layer_end(l);
        assert_undone();
        if (file_remove_tree(scratch, NULL) != 0)
            _exit(12);
    }
}

static void test_a_layer_is_used_and_forgotten(void **state) {
    (void)state;
    struct err err = {0};
    if (geteuid() != 0 || layer_check(runs, &err) != 0)
        skip(); /* tests/live/try.sh tries it without root */
    assert_false(file_exists("runs/one/written"));
    in_a_child(layered);
    assert_undone();
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_a_copy_is_used_and_forgotten),
        T(test_a_directory_with_too_many_files_is_refused_with_the_fix),
        T(test_a_layer_is_used_and_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
