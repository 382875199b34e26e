#include "faults/mechanism/delay_line.h"

#include "base/sys/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

static struct loop *loop;
static struct delay_line *line;
static char landed[16];
static size_t landed_n, wanted_n;
static int64_t due_ns;
static bool early;

static void on_landed(void *arg, const struct delayed *f) {
    (void)arg;
    early |= clock_monotonic_ns() < due_ns;
    landed[landed_n++] = (char)f->message[0];
    if (landed_n == wanted_n)
        loop_stop(loop);
}

static int begin(void **state) {
    (void)state;
    loop = loop_new(NULL);
    line = delay_line_new(loop, on_landed, NULL);
    memset(landed, 0, sizeof(landed));
    landed_n = 0;
    early = false;
    return 0;
}

static int end(void **state) {
    (void)state;
    line = delay_line_free(line);
    loop = loop_free(loop);
    return 0;
}

static bool put_as(char c, int from, int to, int64_t at_ns, bool overtaken) {
    unsigned char byte = (unsigned char)c;
    const struct delayed f = {
        .from = from, .to = to, .overtaken = overtaken, .message = &byte, .len = 1};
    return delay_line_put(line, &f, at_ns); /* of which it takes a copy */
}

static bool put(char c, int from, int to, int64_t at_ns) {
    return put_as(c, from, to, at_ns, false);
}

static void land(size_t n) {
    wanted_n = n;
    assert_int_equal(loop_run(loop, NULL), 0);
}

static void test_frames_land_when_they_are_due_and_not_before(void **state) {
    (void)state;
    int64_t now = clock_monotonic_ns();
    due_ns = now + 3000000;
    assert_true(put('c', 0, 1, now + 5000000));
    assert_true(put('a', 1, 0, now + 3000000));
    assert_true(put('b', 2, 0, now + 4000000));
    land(3);
    assert_string_equal(landed, "abc");
    assert_false(early);
}

static void test_frames_of_one_direction_keep_their_order(void **state) {
    (void)state;
    int64_t now = clock_monotonic_ns();
    due_ns = now;
    assert_false(delay_line_has(line, 0, 1));
    assert_true(put('b', 0, 1, now + 4000000));
    assert_true(put('c', 0, 1, now + 1000000));
    assert_true(put('a', 1, 0, now + 1000000));
    assert_true(put('d', 0, 1, now));
    assert_true(delay_line_has(line, 0, 1));
    assert_false(delay_line_has(line, 0, 2));
    land(4);
    assert_string_equal(landed, "abcd");
    assert_false(delay_line_has(line, 0, 1));
}

static void test_a_frame_that_may_be_overtaken_keeps_nobody_back(void **state) {
    (void)state;
    int64_t now = clock_monotonic_ns();
    due_ns = now;
    assert_true(put_as('c', 0, 1, now + 4000000, true));
    assert_false(delay_line_has(line, 0, 1));
    assert_true(put('a', 0, 1, now + 1000000));
    assert_true(put('b', 0, 1, now));
    land(3);
    assert_string_equal(landed, "abc");
    assert_false(delay_line_has(line, 0, 1));
}

static void test_more_than_there_is_room_for_is_refused(void **state) {
    static unsigned char long_one[1 << 20];
    const struct delayed f = {.from = 0, .to = 1, .message = long_one, .len = sizeof(long_one)};
    int64_t never = clock_monotonic_ns() + INT64_C(3600000000000);
    (void)state;
    for (size_t i = 0; i < DELAY_LINE_BYTES_MAX / sizeof(long_one); i++)
        assert_true(delay_line_put(line, &f, never));
    assert_false(delay_line_put(line, &f, never));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_frames_land_when_they_are_due_and_not_before, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_frames_of_one_direction_keep_their_order, begin, end),
        cmocka_unit_test_setup_teardown(test_a_frame_that_may_be_overtaken_keeps_nobody_back, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_more_than_there_is_room_for_is_refused, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
