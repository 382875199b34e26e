/* What a worker may write into the FIFO, and what comes of it. */
#include "agent/workers/file_timer.h"

#include "base/sys/clock.h"
#include "base/sys/file.h"

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

static char dir[64], path[96];
static struct loop *loop;
static struct file_timer *t;
static int to;
static struct {
    int n, odd;
    pid_t pid;
    int signo;
    char scope[256], what[256];
} seen;

static void on_expired(void *arg, pid_t pid, int signo, const char *scope, int64_t late_ns) {
    (void)arg;
    assert_true(late_ns >= 0);
    seen.n++;
    seen.pid = pid;
    seen.signo = signo;
    snprintf(seen.scope, sizeof(seen.scope), "%s", scope);
    loop_stop(loop);
}

static void on_odd(void *arg, const char *what) {
    (void)arg;
    seen.odd++;
    snprintf(seen.what, sizeof(seen.what), "%s", what);
}

static const struct file_timer_events events = {.expired = on_expired, .odd = on_odd};

static int set_up(void **state) {
    (void)state;
    strcpy(dir, "/tmp/test_file_timer_XXXXXX");
    assert_int_equal(file_make_temp_dir(dir, NULL), 0);
    snprintf(path, sizeof(path), "%s/fifo", dir);
    memset(&seen, 0, sizeof(seen));
    loop = loop_new(NULL);
    t = file_timer_new(loop, path, &events, NULL, NULL);
    assert_non_null(t);
    to = open(path, O_WRONLY | O_NONBLOCK);
    assert_true(to >= 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    close(to);
    t = file_timer_free(t);
    assert_false(file_exists(path));
    loop_free(loop);
    return file_remove_tree(dir, NULL);
}

static void say(const char *text) {
    assert_int_equal(file_write_all(to, text, strlen(text), NULL), 0);
}

/* seconds from now; -1e9: takes it back. */
static void ask(int pid, const char *scope, double seconds, int signo) {
    char text[512];
    double at = seconds < -1e8 ? -1 : (double)clock_realtime_ns() / 1e9 + seconds;
    snprintf(text, sizeof(text),
             "{\"version\": 1, \"pid\": %d, \"scope_id\": \"%s\", \"expiration_time\": %.6f, "
             "\"signal\": %d}\n",
             pid, scope, at, signo);
    say(text);
}

static void on_end(void *arg, int64_t now_ns) {
    (void)arg, (void)now_ns;
    loop_stop(loop);
}

/* Runs until one expires; or until all that was written is read, when none can. */
static void run(int64_t timeout_ms) {
    struct loop_source *end = loop_timer(loop, on_end, NULL);
    loop_timer_at(end, clock_monotonic_ns() + timeout_ms * 1000000);
    assert_int_equal(loop_run(loop, NULL), 0);
    loop_source_free(end);
}

static void test_a_timer_that_expires_is_told_once_with_its_signal(void **state) {
    (void)state;
    ask(17, "slow", 0.01, 9);
    say("{\"version\":1,\"pid\":18,\"scope_id\":\"never\",\"expiration_time\":1e300,\"signal\":9}"
        "\n");
    run(30000);
    assert_int_equal(seen.pid, 17);
    assert_int_equal(seen.signo, 9);
    assert_string_equal(seen.scope, "slow");
    run(20);
    assert_int_equal(seen.n, 1);
    assert_int_equal(seen.odd, 0);
}

static void test_one_that_is_taken_back_or_put_off_does_nothing(void **state) {
    (void)state;
    ask(17, "a", 0.02, 9);
    ask(17, "b", 0.02, 9);
    ask(17, "a", -1e9, 0);
    ask(17, "b", 1000, 9);
    ask(17, "of nobody", -1e9, 0);
    ask(19, "a", 0.03, 10);
    run(30000);
    assert_int_equal(seen.pid, 19);
    assert_int_equal(seen.n, 1);
}

/* As torchrun's server has it: of those that are due the earliest that has a signal. */
static void test_all_timers_of_a_process_go_with_the_first_that_is_due(void **state) {
    (void)state;
    ask(17, "first", -3, 0);
    ask(17, "third", -1, 12);
    ask(17, "second", -2, 10);
    ask(17, "to come", 0.01, 9);
    run(30000);
    assert_string_equal(seen.scope, "second");
    assert_int_equal(seen.signo, 10);
    run(30);
    assert_int_equal(seen.n, 1);
    ask(18, "without a signal", -1, 0);
    run(20);
    assert_int_equal(seen.n, 1);
}

static void test_a_process_that_has_ended_is_forgotten(void **state) {
    (void)state;
    ask(17, "a", 0.02, 9);
    ask(18, "a", 1000, 9);
    run(5);
    file_timer_forget(t, 17);
    run(30);
    assert_int_equal(seen.n, 0);
    ask(19, "unread", 0, 9);
    file_timer_clear(t);
    run(10);
    assert_int_equal(seen.n, 0);
    assert_int_equal(seen.odd, 0);
}

static void test_a_line_may_come_in_pieces(void **state) {
    (void)state;
    say("{\"version\":1,\"pid\":17,\"scope_id\":\"s\",");
    run(5);
    say("\"expiration_time\":0,\"signal\":9}\n{\"version\":1,\"pid\":18,");
    run(30000);
    assert_int_equal(seen.pid, 17);
    say("\"scope_id\":\"s\",\"expiration_time\":1.5e3,\"signal\":6}\n\n");
    run(30000);
    assert_int_equal(seen.pid, 18);
    assert_int_equal(seen.odd, 0);
}

static void test_what_is_no_request_is_told_once_and_kills_nobody(void **state) {
    static const char *const lines[] = {
        "nonsense\n",
        "{}\n",
        "[1]\n",
        "{\"version\":2,\"pid\":17,\"scope_id\":\"s\",\"expiration_time\":0,\"signal\":9}\n",
        "{\"version\":1,\"pid\":-1,\"scope_id\":\"s\",\"expiration_time\":0,\"signal\":9}\n",
        "{\"version\":1,\"pid\":0,\"scope_id\":\"s\",\"expiration_time\":0,\"signal\":9}\n",
        "{\"version\":1,\"pid\":4294967297,\"scope_id\":\"s\",\"expiration_time\":0,\"signal\":9}"
        "\n",
        "{\"version\":1,\"pid\":17,\"expiration_time\":0,\"signal\":9}\n",
        "{\"version\":1,\"pid\":17,\"scope_id\":\"s\",\"signal\":9}\n",
        "{\"version\":1,\"pid\":17,\"scope_id\":\"s\",\"expiration_time\":\"0\",\"signal\":9}\n",
        "{\"version\":1,\"pid\":17,\"scope_id\":\"s\",\"expiration_time\":0,\"signal\":4711}\n",
        NULL};
    (void)state;
    for (const char *const *line = lines; *line; line++)
        say(*line);
    run(20);
    assert_int_equal(seen.n, 0);
    assert_int_equal(seen.odd, 1);
    assert_non_null(strstr(seen.what, "nonsense"));
    ask(17, "s", 0, 9);
    run(30000);
    assert_int_equal(seen.pid, 17);
}

/* Exactly what is at each bound. */
static void test_the_bounds_of_a_request_are_those_of_the_system(void **state) {
    static const struct {
        long long pid;
        int signo;
        bool good;
    } rows[] = {{1, 9, true},         {INT32_MAX, 9, true}, {INT32_MAX + 1LL, 9, false},
                {0, 9, false},        {17, NSIG - 1, true}, {17, NSIG, false},
                {17, NSIG + 1, false}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char text[200];
        int odd = seen.odd, n = seen.n;
        snprintf(text, sizeof(text),
                 "{\"version\":1,\"pid\":%lld,\"scope_id\":\"s\",\"expiration_time\":0,"
                 "\"signal\":%d}\n",
                 rows[i].pid, rows[i].signo);
        say(text);
        if (!rows[i].good) /* read together with one that ends the wait */
            ask(18, "s", 0, 10);
        run(30000);
        assert_int_equal(seen.n, n + 1);
        if (rows[i].good) {
            assert_int_equal(seen.pid, rows[i].pid);
            assert_int_equal(seen.signo, rows[i].signo);
            assert_int_equal(seen.odd, odd);
        } else
            assert_int_equal(seen.pid, 18);
    }
    assert_int_equal(seen.odd, 1);
}

/* A line of as many bytes as a pipe takes whole is one, with a byte more it is none. */
static void test_a_line_may_be_as_long_as_what_a_pipe_takes_whole(void **state) {
    (void)state;
    for (int more = 0; more < 2; more++) {
        char text[PIPE_BUF + 8];
        int n = snprintf(text, sizeof(text),
                         "{\"version\":1,\"pid\":17,\"expiration_time\":0,\"signal\":9,"
                         "\"scope_id\":\"");
        memset(text + n, 's', sizeof(text) - (size_t)n);
        strcpy(text + PIPE_BUF - 2 + more, "\"}");
        say(text);
        say("\n");
        if (more) /* ends the wait */
            ask(18, "t", 0, 10);
        run(30000);
        assert_int_equal(seen.pid, more ? 18 : 17);
        assert_int_equal(seen.n, more + 1);
        assert_int_equal(seen.odd, more);
    }
}

static void test_a_line_without_an_end_takes_no_memory(void **state) {
    (void)state;
    char text[PIPE_BUF + 1];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (int i = 0; i < 64; i++) {
        say(text);
        run(1);
    }
    assert_int_equal(seen.odd, 1);
    say("\"}\n");
    ask(17, "s", 0, 9);
    run(30000);
    assert_int_equal(seen.pid, 17);
}

static void test_there_are_so_many_timers_and_no_more(void **state) {
    (void)state;
    for (int i = 0; i < FILE_TIMER_MAX; i++) {
        ask(i + 1, "s", 1000, 9);
        if (i % 256 == 255)
            run(2);
    }
    assert_int_equal(seen.odd, 0);
    ask(FILE_TIMER_MAX + 1, "s", 0, 9);
    run(10);
    assert_int_equal(seen.odd, 1);
    assert_int_equal(seen.n, 0);
    ask(1, "s", 0, 9); /* one that is there */
    run(30000);
    assert_int_equal(seen.pid, 1);
}

static void test_a_fifo_of_before_is_replaced_and_a_file_is_not(void **state) {
    (void)state;
    char other[96];
    struct err err = {0};
    snprintf(other, sizeof(other), "%s/other", dir);
    assert_int_equal(mkfifo(other, 0600), 0);
    struct file_timer *second = file_timer_new(loop, other, &events, NULL, &err);
    assert_non_null(second);
    file_timer_free(second);
    assert_int_equal(file_write(other, "x", 1, NULL), 0);
    assert_null(file_timer_new(loop, other, &events, NULL, &err));
    assert_int_equal(err.code, -EINVAL);
    assert_true(file_exists(other));
    snprintf(other, sizeof(other), "%s/not/there", dir);
    assert_null(file_timer_new(loop, other, &events, NULL, &err));
    assert_non_null(strstr(err.msg, other));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_timer_that_expires_is_told_once_with_its_signal),
        TEST(test_one_that_is_taken_back_or_put_off_does_nothing),
        TEST(test_all_timers_of_a_process_go_with_the_first_that_is_due),
        TEST(test_a_process_that_has_ended_is_forgotten),
        TEST(test_a_line_may_come_in_pieces),
        TEST(test_what_is_no_request_is_told_once_and_kills_nobody),
        TEST(test_the_bounds_of_a_request_are_those_of_the_system),
        TEST(test_a_line_may_be_as_long_as_what_a_pipe_takes_whole),
        TEST(test_a_line_without_an_end_takes_no_memory),
        TEST(test_there_are_so_many_timers_and_no_more),
        TEST(test_a_fifo_of_before_is_replaced_and_a_file_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
