#include "base/sys/signal_events.h"

#include "base/sys/clock.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>
#include <unistd.h>

static void test_a_signal_is_told_with_its_sender_and_time(void **state) {
    (void)state;
    struct err err = {0};
    struct signal_event e;
    int found = 0, r;
    struct signal_events *s = signal_events_open(&err);
    if (!s) { /* not as this user: it says what would help */
        assert_non_null(strstr(err.msg, "CAP_PERFMON"));
        skip();
    }
    int64_t before = clock_monotonic_ns();
    kill(getpid(), SIGCONT);
    int64_t after = clock_monotonic_ns();
    while ((r = signal_events_read(s, &e)) != 0)
        if (r == 1 && e.to == getpid() && e.by == getpid() && e.signo == SIGCONT)
            found += e.t_ns >= before && e.t_ns <= after;
    assert_int_equal(found, 1);
    assert_null(signal_events_close(s));
}

static void test_nothing_is_closed_without_harm(void **state) {
    (void)state;
    assert_null(signal_events_close(NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_signal_is_told_with_its_sender_and_time),
        cmocka_unit_test(test_nothing_is_closed_without_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
