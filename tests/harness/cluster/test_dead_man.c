/* When silence is one: nothing said for long enough, by somebody who was there to hear it. */
#include "harness/cluster/dead_man.h"

#include "base/sys/clock.h"
#include "harness/carrier/channel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { AFTER_NS = 50000000 };

static struct stand {
    struct loop *loop;
    struct dead_man *d;
    struct loop_source *timer;
    int ends[2], silences;
    int64_t silent_ns;
} s;

static void on_silence(void *arg, int64_t silent_ns) {
    s.silences++;
    s.silent_ns = silent_ns;
    loop_stop(s.loop);
}

static void set_up(loop_timer_fn *fn) {
    s = (struct stand){.loop = loop_new(NULL)};
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s.ends), 0);
    s.timer = loop_timer(s.loop, fn, NULL);
    s.d = dead_man_new(s.loop, s.ends[0], AFTER_NS, on_silence, NULL);
}

static void tear_down(void) {
    s.d = dead_man_free(s.d);
    loop_free(s.loop);
    close(s.ends[0]);
    close(s.ends[1]);
}

static void on_end(void *arg, int64_t now) {
    loop_stop(s.loop);
}

static void test_silence_is_told_once(void **state) {
    (void)state;
    set_up(on_end);
    assert_int_equal(loop_run(s.loop, NULL), 0);
    assert_int_equal(s.silences, 1);
    assert_true(s.silent_ns >= AFTER_NS);
    loop_timer_at(s.timer, clock_monotonic_ns() + 3 * AFTER_NS);
    assert_int_equal(loop_run(s.loop, NULL), 0);
    assert_int_equal(s.silences, 1);
    dead_man_heard(s.d); /* another one */
    loop_timer_off(s.timer);
    assert_int_equal(loop_run(s.loop, NULL), 0);
    assert_int_equal(s.silences, 2);
    tear_down();
}

static bool stood_still;

/* Whatever was said while the machine stood still lies in the socket, or comes soon. */
static void on_still(void *arg, int64_t now) {
    const struct timespec t = {.tv_nsec = 2 * AFTER_NS};
    if (stood_still) {
        loop_stop(s.loop);
        return;
    }
    stood_still = true;
    nanosleep(&t, NULL);
    loop_timer_at(s.timer, clock_monotonic_ns() + AFTER_NS / 2);
}

static void test_who_stood_still_waits_anew(void **state) {
    (void)state;
    stood_still = false;
    set_up(on_still);
    loop_timer_at(s.timer, 0);
    assert_int_equal(loop_run(s.loop, NULL), 0);
    assert_int_equal(s.silences, 0);
    tear_down();
}

static void test_what_waits_to_be_read_was_said(void **state) {
    (void)state;
    set_up(on_end);
    assert_int_equal(send(s.ends[1], "x", 1, 0), 1);
    loop_timer_at(s.timer, clock_monotonic_ns() + AFTER_NS + AFTER_NS / 2);
    assert_int_equal(loop_run(s.loop, NULL), 0);
    assert_int_equal(s.silences, 0);
    tear_down();
}

static void test_never(void **state) {
    (void)state;
    struct loop *l = loop_new(NULL);
    assert_null(dead_man_new(l, -1, 0, on_silence, NULL));
    dead_man_heard(NULL);
    assert_null(dead_man_free(NULL));
    loop_free(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silence_is_told_once),
        cmocka_unit_test(test_who_stood_still_waits_anew),
        cmocka_unit_test(test_what_waits_to_be_read_was_said),
        cmocka_unit_test(test_never),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
