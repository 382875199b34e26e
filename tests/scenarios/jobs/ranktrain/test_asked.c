/* SIGTERM that is read and not delivered, and the time that is left behind it. */
#include "scenarios/jobs/ranktrain/asked.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"
#include "base/sys/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const int64_t hour_ns = INT64_C(3600000000000), moment_ns = INT64_C(30000000);

static bool readable(int fd, int timeout_ms) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, timeout_ms) == 1;
}

/* What has been sent to this process is taken away, so that the next test begins without. */
static int teardown(void **state) {
    (void)state;
    sigset_t set;
    struct timespec now = {0};
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    while (sigtimedwait(&set, NULL, &now) > 0)
        continue;
    return 0;
}

static void test_asked_once_it_stays_asked(void **state) {
    (void)state;
    struct asked a;
    struct err err;
    assert_int_equal(asked_open(&a, &err), 0);
    assert_false(asked_is(&a));
    assert_int_equal(a.told_fd, a.end_fd);
    assert_int_equal(a.stop_fd, -1);
    assert_int_equal(fcntl(a.told_fd, F_GETFD), FD_CLOEXEC);
    assert_true(fcntl(a.told_fd, F_GETFL) & O_NONBLOCK);
    kill(getpid(), SIGTERM); /* does not end it */
    assert_true(asked_is(&a));
    assert_true(asked_is(&a));
    int was = a.told_fd;
    asked_close(&a);
    assert_int_equal(fcntl(was, F_GETFD), -1);
    assert_true(a.told_fd == -1 && a.end_fd == -1 && a.stop_fd == -1);
    asked_close(&a);
}

static void test_behind_it_there_is_a_grace(void **state) {
    (void)state;
    struct asked a;
    struct err err;
    assert_int_equal(asked_open(&a, &err), 0);
    assert_int_equal(asked_allow(&a, moment_ns, &err), 0);
    assert_true(a.end_fd >= 0 && a.end_fd != a.told_fd && a.stop_fd >= 0);
    assert_int_equal(fcntl(a.end_fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fcntl(a.stop_fd, F_GETFD), FD_CLOEXEC);
    assert_false(readable(a.end_fd, 0) || asked_is(&a));
    int64_t begun = deadline_now_ns();
    kill(getpid(), SIGTERM);
    assert_true(readable(a.end_fd, 60000));
    assert_true(deadline_now_ns() - begun >= moment_ns);
    assert_true(asked_is(&a));
    int end = a.end_fd, stop = a.stop_fd;
    asked_close(&a);
    assert_int_equal(fcntl(end, F_GETFD), -1);
    assert_int_equal(fcntl(stop, F_GETFD), -1);
}

/* Nobody wants to know any more, in the grace or before it: the thread ends with it. */
static void test_who_closes_does_not_wait_for_the_grace(void **state) {
    (void)state;
    for (int told = 0; told < 2; told++) {
        struct asked a;
        struct err err;
        assert_int_equal(asked_open(&a, &err), 0);
        assert_int_equal(asked_allow(&a, hour_ns, &err), 0);
        if (told)
            kill(getpid(), SIGTERM);
        int64_t begun = deadline_now_ns();
        assert_false(readable(a.end_fd, 20));
        asked_close(&a);
        assert_true(deadline_now_ns() - begun < INT64_C(60000000000));
    }
}

/* With so few descriptors that one, two or none can be opened: what was there stays as it was. */
static void test_without_descriptors_nothing_is_changed(void **state) {
    (void)state;
    struct rlimit was, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    for (int left = 0; left < 3; left++) {
        struct asked a, before;
        struct err err = {0};
        few = was;
        int next = dup(0);
        close(next);
        few.rlim_cur = (rlim_t)(next + left);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        int r = asked_open(&a, &err);
        assert_int_equal(r, left ? 0 : -EMFILE);
        if (left == 0)
            assert_string_equal(err.msg, "signalfd: Too many open files");
        before = a;
        if (left) {
            assert_int_equal(asked_allow(&a, hour_ns, &err), -EMFILE);
            assert_string_equal(err.msg,
                                "start the thread that waits for the end: Too many open files");
            assert_memory_equal(&a, &before, sizeof(a));
        }
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
        asked_close(&a);
        int again = dup(0); /* nothing has been left open */
        assert_int_equal(again, next);
        close(again);
    }
}

int main(int argc, char **argv) {
    descriptors_open_standard(); /* what is told of numbers begins behind them */
#define TEST(name) cmocka_unit_test_teardown(test_##name, teardown)
    const struct CMUnitTest tests[] = {
        TEST(asked_once_it_stays_asked),
        TEST(behind_it_there_is_a_grace),
        TEST(who_closes_does_not_wait_for_the_grace),
        TEST(without_descriptors_nothing_is_changed),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
