/* The files of a worker, opened while it lives, and what becomes of them. */
#include "harness/observe/worker_files.h"

#include "tests/harness/observe/starting.h"
#include "base/sys/descriptors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stage {
    char dir[200], out[256], err[256], error_file[256], variable[300];
    int out_fd, err_fd;
    struct started worker;
    struct worker_file v[WORKER_FILES_N];
};

static int make(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0600);
    assert_true(fd >= 0);
    return fd;
}

static void begin(struct stage *s) {
    const char *tmp = getenv("TMPDIR");
    *s = (struct stage){.out_fd = -1, .err_fd = -1};
    snprintf(s->dir, sizeof(s->dir), "%.150s/worker-files-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->out, sizeof(s->out), "%s/out", s->dir);
    snprintf(s->err, sizeof(s->err), "%s/err", s->dir);
    snprintf(s->error_file, sizeof(s->error_file), "%s/error.json", s->dir);
    snprintf(s->variable, sizeof(s->variable), "TORCHELASTIC_ERROR_FILE=%s", s->error_file);
    s->out_fd = make(s->out);
    s->err_fd = make(s->err);
}

static void start(struct stage *s, int out, int err, const char *variable) {
    const char *const environment[] = {"A=B", variable, NULL};
    s->worker = started_begin(environment, out, err);
    worker_files_open(s->v, s->worker.pid);
}

static void end(struct stage *s) {
    worker_files_close(s->v);
    for (int i = 0; i < WORKER_FILES_N; i++)
        assert_true(s->v[i].fd == -1 && s->v[i].dir == -1);
    started_end(&s->worker);
    unlink(s->out);
    unlink(s->err);
    unlink(s->error_file);
    assert_int_equal(rmdir(s->dir), 0);
    close(s->out_fd);
    close(s->err_fd);
}

static void put(int fd, const char *text) {
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static struct worker_file_look look(struct worker_file *f) {
    struct worker_file_look ret = {0};
    assert_true(worker_file_look(f, &ret));
    return ret;
}

static void test_what_is_added_moved_or_taken_away_is_seen(void **state) {
    (void)state;
    struct stage s;
    begin(&s);
    put(s.out_fd, "three words more\n");
    start(&s, s.out_fd, s.err_fd, "C=D");
    assert_true(worker_files_any(s.v));
    assert_string_equal(s.v[0].what, "stdout");
    assert_string_equal(s.v[0].path, s.out);
    assert_string_equal(s.v[1].what, "stderr");
    assert_string_equal(s.v[1].path, s.err);
    assert_string_equal(s.v[2].what, "error-file");
    assert_true(s.v[0].fd >= 0 && s.v[1].fd >= 0);
    assert_true(s.v[2].fd == -1 && s.v[2].dir == -1);
    assert_int_equal(s.v[0].bytes, -1);
    struct worker_file_look first = look(&s.v[0]), empty = look(&s.v[1]);
    assert_int_equal(first.bytes, 17);
    assert_int_equal(s.v[0].bytes, 17);
    assert_true(first.linked);
    assert_int_equal(strlen(first.mark), 12);
    assert_int_equal(empty.bytes, 0);
    assert_string_not_equal(first.mark, empty.mark);

    /* What is added leaves the mark, what is changed in front of it does not. */
    put(s.out_fd, "and more");
    struct worker_file_look later = look(&s.v[0]);
    assert_int_equal(later.bytes, 25);
    assert_string_equal(later.mark, first.mark);
    assert_int_equal(truncate(s.out, 10), 0);
    later = look(&s.v[0]);
    assert_int_equal(later.bytes, 10);
    assert_string_not_equal(later.mark, first.mark);
    char elsewhere[300];
    snprintf(elsewhere, sizeof(elsewhere), "%s.moved", s.out);
    assert_int_equal(rename(s.out, elsewhere), 0);
    assert_true(look(&s.v[0]).linked);
    assert_int_equal(unlink(elsewhere), 0);
    assert_false(look(&s.v[0]).linked);
    end(&s);
}

static void test_one_file_of_both_streams_is_held_once(void **state) {
    (void)state;
    struct stage s;
    begin(&s);
    start(&s, s.out_fd, s.out_fd, "C=D");
    assert_true(s.v[0].fd >= 0);
    assert_int_equal(s.v[1].fd, -1);
    end(&s);
}

static void test_what_is_no_plain_file_is_not_opened(void **state) {
    (void)state;
    struct stage s;
    int ends[2];
    struct worker_file_look ret;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    begin(&s);
    start(&s, ends[1], -1, "C=D");
    assert_false(worker_files_any(s.v));
    for (int i = 0; i < WORKER_FILES_N; i++)
        assert_false(worker_file_look(&s.v[i], &ret));
    end(&s);
    close(ends[0]);
    close(ends[1]);
}

static void test_who_is_gone_has_no_files(void **state) {
    (void)state;
    struct worker_file v[WORKER_FILES_N];
    worker_files_open(v, 0x3ffffff);
    assert_false(worker_files_any(v));
    worker_files_close(v);
    v[1].fd = 0; /* as where the standard input is closed */
    assert_true(worker_files_any(v));
}

static void test_an_error_file_is_held_from_when_it_is_there(void **state) {
    (void)state;
    struct stage s;
    struct worker_file_look ret;
    begin(&s);
    start(&s, -1, -1, s.variable);
    assert_true(worker_files_any(s.v));
    assert_string_equal(s.v[2].path, s.error_file);
    assert_false(worker_file_look(&s.v[2], &ret));
    int fd = make(s.error_file);
    put(fd, "{}");
    assert_int_equal(look(&s.v[2]).bytes, 2);
    assert_int_equal(unlink(s.error_file), 0);
    assert_false(look(&s.v[2]).linked);
    close(fd);
    end(&s);
}

static void test_an_error_file_that_is_a_link_or_has_no_whole_path_is_none(void **state) {
    (void)state;
    struct stage s;
    struct worker_file_look ret;
    char too_long[1200] = "TORCHELASTIC_ERROR_FILE=/tmp/";
    memset(too_long + strlen(too_long), 'x', 1100);
    const char *const values[] = {"TORCHELASTIC_ERROR_FILE=error.json",
                                  "TORCHELASTIC_ERROR_FILE=tmp/error.json",
                                  "TORCHELASTIC_ERROR_FILE=",
                                  "TORCHELASTIC_ERROR_FILE=/no-such-folder/error.json",
                                  "XTORCHELASTIC_ERROR_FILE=/tmp/error.json",
                                  too_long};
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        begin(&s);
        start(&s, -1, -1, values[i]);
        assert_int_equal(s.v[2].dir, -1);
        end(&s);
    }
    begin(&s);
    start(&s, -1, -1, s.variable);
    assert_int_equal(symlink(s.out, s.error_file), 0);
    assert_false(worker_file_look(&s.v[2], &ret));
    end(&s);
}

/* Of a file the first 64 KiB are marked, and all of these. */
static void test_of_a_long_file_the_beginning_is_marked(void **state) {
    (void)state;
    struct stage s;
    static char text[100001];
    memset(text, 'a', sizeof(text) - 1);
    begin(&s);
    put(s.out_fd, text);
    start(&s, s.out_fd, s.err_fd, "C=D");
    struct worker_file_look first = look(&s.v[0]);
    assert_int_equal(first.bytes, 100000);
    int fd = open(s.out, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "b", 1, 65536), 1);
    assert_string_equal(look(&s.v[0]).mark, first.mark);
    assert_int_equal(pwrite(fd, "b", 1, 65535), 1);
    assert_string_not_equal(look(&s.v[0]).mark, first.mark);
    close(fd);
    end(&s);
}

int main(void) {
    descriptors_open_standard(); /* those of the processes that are started here */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_added_moved_or_taken_away_is_seen),
        cmocka_unit_test(test_one_file_of_both_streams_is_held_once),
        cmocka_unit_test(test_what_is_no_plain_file_is_not_opened),
        cmocka_unit_test(test_who_is_gone_has_no_files),
        cmocka_unit_test(test_an_error_file_is_held_from_when_it_is_there),
        cmocka_unit_test(test_an_error_file_that_is_a_link_or_has_no_whole_path_is_none),
        cmocka_unit_test(test_of_a_long_file_the_beginning_is_marked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
