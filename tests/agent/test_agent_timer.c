/* The file timer of an agent's workers: where its FIFO is, what is said of one that is due, and what is told of its end. The FIFO is a
 * real one; the guard, which has the signal sent, is a double. */
#include "agent/agent_timer.h"

#include "agent/workers/file_timer.h"
#include "agent/workers/guard.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/line.h"
#include "base/sys/loop.h"
#include "tests/agent/captured.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

enum { PATIENCE_MS = 20000 };

static struct loop *loop;
static struct agent_timer *t;
static struct buf said;
static char dir[64], path[96];
static struct {
    pid_t pid;
    int signo, code;
} guarded;
static char something[1];

int guard_signal_one(const struct guard *g, pid_t pid, int signo) {
    assert_ptr_equal(g, something);
    guarded.pid = pid;
    guarded.signo = signo;
    loop_stop(loop);
    return guarded.code;
}

static pid_t forgotten;

void __real_file_timer_forget(struct file_timer *timer, pid_t pid);
void __wrap_file_timer_forget(struct file_timer *timer, pid_t pid);
void __wrap_file_timer_forget(struct file_timer *timer, pid_t pid) {
    forgotten = pid;
    __real_file_timer_forget(timer, pid);
}

static int set_up(void **state) {
    (void)state;
    strcpy(dir, "/tmp/test_agent_timer_XXXXXX");
    assert_int_equal(file_make_temp_dir(dir, NULL), 0);
    snprintf(path, sizeof(path), "%s/fifo", dir);
    setenv("TMPDIR", dir, 1);
    setenv("TORCHELASTIC_ENABLE_FILE_TIMER", "1", 1);
    setenv("TORCHELASTIC_TIMER_FILE", path, 1);
    loop = loop_new(NULL);
    t = NULL;
    guarded.code = 0;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    assert_null(agent_timer_free(t));
    assert_int_equal(access(path, F_OK), -1); /* gone with its timer */
    loop_free(loop);
    rmdir(dir);
    unsetenv("TMPDIR");
    unsetenv("TORCHELASTIC_ENABLE_FILE_TIMER");
    unsetenv("TORCHELASTIC_TIMER_FILE");
    buf_fini(&said);
    return 0;
}

static int make(struct err *err) {
    return agent_timer_new(loop, (struct guard *)something, &t, err);
}

static void test_one_is_made_only_where_it_is_asked_for(void **state) {
    static const char *const others[] = {"0", "", "yes", "11"};
    struct err err = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        t = (struct agent_timer *)something;
        setenv("TORCHELASTIC_ENABLE_FILE_TIMER", others[i], 1);
        assert_int_equal(make(&err), 0);
        assert_null(t);
    }
    unsetenv("TORCHELASTIC_ENABLE_FILE_TIMER");
    assert_int_equal(make(&err), 0);
    assert_null(t);
    assert_null(agent_timer_path(t));
    agent_timer_begin(t);
    assert_string_equal(agent_timer_end(t, 5, "x"), "x");
    assert_string_equal(agent_timer_end(t, 5, ""), "");
    assert_int_equal(access(path, F_OK), -1);
}

static bool is_fifo(const char *at) {
    struct stat s;
    return stat(at, &s) == 0 && S_ISFIFO(s.st_mode);
}

static void test_the_fifo_is_where_it_is_said_or_a_new_one_of_the_temporary_folder(void **state) {
    struct err err;
    char first[PATH_MAX], begin[128];
    (void)state;
    assert_int_equal(make(&err), 0);
    assert_string_equal(agent_timer_path(t), path);
    assert_true(is_fifo(path));
    agent_timer_free(t);
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            unsetenv("TORCHELASTIC_TIMER_FILE");
        else
            setenv("TORCHELASTIC_TIMER_FILE", "", 1);
        assert_int_equal(make(&err), 0);
        snprintf(begin, sizeof(begin), "%s/watchdog_timer_", dir);
        const char *name = agent_timer_path(t);
        assert_true(str_starts(name, begin));
        assert_int_equal(strspn(name + strlen(begin), "0123456789abcdef"), 32);
        assert_int_equal(strlen(name), strlen(begin) + 32);
        assert_true(strncmp(name + strlen(begin), name + strlen(begin) + 16, 16) != 0);
        assert_true(is_fifo(name));
        for (int half = 0; i && half < 2; half++)
            assert_memory_not_equal(name + strlen(begin) + 16 * half,
                                    first + strlen(begin) + 16 * half, 16);
        str_copy(first, sizeof(first), name);
        t = agent_timer_free(t);
        assert_false(is_fifo(first));
    }
}

static void test_a_fifo_that_cannot_be_made_is_said(void **state) {
    struct err err = {0};
    (void)state;
    setenv("TORCHELASTIC_TIMER_FILE", "/nowhere/fifo", 1);
    assert_int_equal(make(&err), -ENOENT);
    assert_null(t);
    assert_true(str_starts(err.msg, "TORCHELASTIC_TIMER_FILE: "));
    assert_non_null(strstr(err.msg, "/nowhere/fifo"));
}

static void on_late(void *arg, int64_t now_ns) {
    (void)arg, (void)now_ns;
    loop_stop(loop);
}

/* A worker asks to be killed at once; what is said of it. */
static void expire(pid_t pid, int code, const char *text) {
    struct captured to_err;
    char request[256];
    int to = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(to >= 0);
    snprintf(request, sizeof(request),
             "{\"version\": 1, \"pid\": %d, \"scope_id\": \"%s\", \"expiration_time\": 1.5, "
             "\"signal\": 12}\n",
             (int)pid, text);
    struct loop_source *late = loop_timer(loop, on_late, NULL);
    loop_timer_at(late, clock_monotonic_ns() + PATIENCE_MS * 1000000LL);
    guarded.code = code;
    guarded.pid = 0;
    buf_clear(&said);
    ssize_t n = write(to, request, strlen(request));
    captured_begin(&to_err, stderr);
    int rc = loop_run(loop, NULL);
    captured_end(&to_err, &said);
    loop_source_free(late);
    close(to);
    assert_int_equal(n, strlen(request));
    assert_int_equal(rc, 0);
    assert_int_equal(guarded.pid, pid);
    assert_int_equal(guarded.signo, 12);
}

static void assert_between(const char *begin, const char *end) {
    const char *text = buf_str(&said);
    if (!str_starts(text, begin) || !str_ends(text, end))
        fail_msg("\"%s\" is not \"%s...%s\"", text, begin, end);
}

static void test_a_worker_that_is_due_is_killed_and_its_end_has_that_reason(void **state) {
    struct err err;
    (void)state;
    assert_int_equal(make(&err), 0);
    expire(4711, 0, "train.py#12");
    assert_string_equal(buf_str(&said), "rankrun: pid 4711: its timer \"train.py#12\" expired "
                                        "1000000000000 ms ago, signal 12\n"); /* long ago */
    assert_string_equal(agent_timer_end(t, 4712, ""), "");
    assert_string_equal(agent_timer_end(t, 4711, "its own word"), "its own word");
    assert_string_equal(agent_timer_end(t, 4711, ""), "its timer \"train.py#12\" expired");
    agent_timer_begin(t); /* of a round before it is said no more */
    assert_string_equal(agent_timer_end(t, 4711, ""), "");
    assert_string_equal(agent_timer_end(t, 1, ""), "");
}

static void test_who_cannot_be_killed_is_said_with_why(void **state) {
    struct err err;
    (void)state;
    assert_int_equal(make(&err), 0);
    expire(4711, -ESRCH, "a");
    assert_string_equal(buf_str(&said), "rankrun: pid 4711: its timer \"a\" expired, but it is no "
                                        "process of this job (any more)\n");
    assert_string_equal(agent_timer_end(t, 4711, ""), "");
    expire(4711, -EPERM, "a");
    assert_string_equal(buf_str(&said), "rankrun: pid 4711: its timer \"a\" expired, but Operation "
                                        "not permitted\n");
    assert_string_equal(agent_timer_end(t, 4711, ""), "");
}

static void test_a_program_reads_the_same_as_fields(void **state) {
    struct err err;
    (void)state;
    assert_int_equal(make(&err), 0);
    line_as_json(true);
    expire(4711, 0, "a");
    assert_non_null(strstr(buf_str(&said), "\"level\":\"error\",\"what\":\"timer\",\"pid\":4711,"
                                           "\"signal\":12,\"scope\":\"a\",\"text\":"));
    expire(4712, -ESRCH, "b");
    assert_non_null(strstr(buf_str(&said), "\"level\":\"warning\",\"what\":\"timer\",\"pid\":4712,"
                                           "\"signal\":12,\"scope\":\"b\",\"text\":"));
    line_as_json(false);
}

/* What was asked for and has not been read is of the group before. */
static void test_a_new_group_begins_without_timers(void **state) {
    struct err err;
    struct captured to_err;
    (void)state;
    assert_int_equal(make(&err), 0);
    int to = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    assert_int_equal(write(to, "nonsense\n", 9), 9);
    agent_timer_begin(t);
    guarded.pid = 0;
    expire(4713, 0, "c"); /* the one behind it is heard */
    assert_between("rankrun: pid 4713: ", "signal 12\n");
    assert_int_equal(write(to, "nonsense\n", 9), 9);
    struct loop_source *late = loop_timer(loop, on_late, NULL);
    loop_timer_at(late, 0);
    buf_clear(&said);
    captured_begin(&to_err, stderr);
    loop_run(loop, NULL);
    loop_timer_at(late, 0);
    loop_run(loop, NULL);
    captured_end(&to_err, &said);
    assert_between("rankrun: TORCHELASTIC_TIMER_FILE: ", "; this is told once\n");
    loop_source_free(late);
    close(to);
}

/* A process that has ended asks for nothing more: its number may be another's. */
static void test_who_has_ended_is_forgotten(void **state) {
    struct err err;
    (void)state;
    assert_int_equal(make(&err), 0);
    forgotten = 0;
    agent_timer_end(t, 4714, "");
    assert_int_equal(forgotten, 4714);
    agent_timer_end(t, 4715, "why");
    assert_int_equal(forgotten, 4715);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(test_one_is_made_only_where_it_is_asked_for),
        TEST(test_the_fifo_is_where_it_is_said_or_a_new_one_of_the_temporary_folder),
        TEST(test_a_fifo_that_cannot_be_made_is_said),
        TEST(test_a_worker_that_is_due_is_killed_and_its_end_has_that_reason),
        TEST(test_who_cannot_be_killed_is_said_with_why),
        TEST(test_a_program_reads_the_same_as_fields),
        TEST(test_a_new_group_begins_without_timers),
        TEST(test_who_has_ended_is_forgotten),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
