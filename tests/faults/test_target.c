#include "base/sys/process.h"
#include "faults/target.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>
#include <sys/wait.h>

static void test_what_has_ended_is_sent_nothing(void **state) {
    struct process p;
    struct err err;
    int status;
    (void)state;
    pid_t pid = process_fork_idle();
    assert_true(pid > 0);
    assert_int_equal(process_open(pid, &p, NULL), 0);
    struct target t = {.kind = TARGET_STORE, .name = "store of n0", .pid = pid, .pidfd = p.pidfd};
    assert_int_equal(target_signal(&t, 0, &err), 0);
    assert_int_equal(target_signal(&t, SIGKILL, &err), 0);
    assert_int_equal(target_wait_end(&t, &err), 0);

    /* Nobody has waited for it, and the kernel would take the signal. */
    assert_int_equal(process_signal(&p, SIGKILL), 0);
    assert_int_equal(target_signal(&t, SIGKILL, &err), -ESRCH);
    assert_string_equal(err.msg, "store of n0 has ended already");

    assert_int_equal(process_reap(&p, 0, &status), 0);
    assert_int_equal(status, SIGKILL);
    assert_int_equal(target_signal(&t, SIGKILL, &err), -ESRCH);
    process_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_has_ended_is_sent_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
