#include "base/sys/proc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>
#include <unistd.h>

static uint64_t bit_of(int signo) {
    return UINT64_C(1) << (signo - 1);
}

static void handle(int signo) {
    (void)signo;
}

static void test_what_is_caught_ignored_and_pending_is_told_apart(void **state) {
    struct proc_signals now;
    sigset_t set;
    (void)state;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    signal(SIGUSR1, handle);
    signal(SIGUSR2, SIG_IGN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR2);
    assert_true(proc_signals(getpid(), &now));
    assert_true(now.caught & bit_of(SIGUSR1));
    assert_true(now.pending & bit_of(SIGUSR1));
    assert_true(now.ignored & bit_of(SIGUSR2));
    assert_false(now.pending & bit_of(SIGUSR2)); /* forgotten on the spot */
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    assert_true(proc_signals(getpid(), &now));
    assert_true(now.caught & bit_of(SIGUSR1));
    assert_false(now.pending & bit_of(SIGUSR1));
    assert_false((now.caught | now.ignored) & bit_of(SIGTERM));
}

static void test_who_runs_does_not_stand_still(void **state) {
    (void)state;
    assert_false(proc_stands_still(getpid()));
    assert_false(proc_all_stand_still(getpid())); /* nothing is below it */
}

/* Whoever waits for this test is in a system call, and does not run either. */
static void test_who_sleeps_does_not_stand_still(void **state) {
    (void)state;
    assert_false(proc_stands_still(getppid()));
    assert_false(proc_has_held_thread(getppid()));
}

static void test_nothing_is_told_of_who_is_not_there(void **state) {
    struct proc_signals now;
    (void)state;
    assert_false(proc_signals(0, &now));
    assert_false(proc_stands_still(0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_caught_ignored_and_pending_is_told_apart),
        cmocka_unit_test(test_who_runs_does_not_stand_still),
        cmocka_unit_test(test_who_sleeps_does_not_stand_still),
        cmocka_unit_test(test_nothing_is_told_of_who_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
