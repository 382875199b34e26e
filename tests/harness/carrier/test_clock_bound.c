#include "harness/carrier/clock_bound.h"

#include "base/rand.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const int64_t ms = 1000000, s = 1000000000;

/* Another host: ahead by so much at 0, and so many ppm too fast; may be slow. */
struct other {
    int64_t ahead_ns, ppm;
};

static int64_t there(const struct other *o, int64_t ours) {
    return ours + o->ahead_ns + ours * o->ppm / 1000000;
}

static struct clock_sample ask(const struct other *o, int64_t at, int64_t go, int64_t think,
                               int64_t back) {
    return (struct clock_sample){at, there(o, at + go), there(o, at + go + think),
                                 at + go + think + back};
}

static void expect_holds(const struct clock_bound *b, const struct other *o, int64_t at) {
    int64_t low, high, truth = there(o, at) - at;
    assert_true(clock_bound_at(b, at, &low, &high));
    assert_true(low <= truth && truth <= high);
}

static void test_nothing_is_known_before_the_first_sample(void **state) {
    struct clock_bound b = {0};
    int64_t low, high;
    assert_false(clock_bound_at(&b, 1, &low, &high));
    assert_int_equal(clock_bound_order(&b, 1, 2), CLOCK_ORDER_UNKNOWN);
}

static void test_one_way_that_is_slow_does_not_move_the_bound_off_the_truth(void **state) {
    const struct other o = {.ahead_ns = 7 * s};
    struct clock_bound b = {0};
    struct clock_sample slow_there = ask(&o, s, 40 * ms, 1000, 100000);
    struct clock_sample slow_back = ask(&o, 2 * s, 100000, 1000, 40 * ms);
    assert_int_equal(clock_bound_add(&b, &slow_there), 0);
    expect_holds(&b, &o, s);
    assert_int_equal(clock_bound_add(&b, &slow_back), 0);
    expect_holds(&b, &o, 2 * s);
    /* Each of them is 40 ms wide, and both together 0.2 ms and what may have drifted. */
    assert_true(b.high_ns - b.low_ns < ms / 2);
}

static void test_offset_and_drift_lie_inside_in_each_of_many_worlds(void **state) {
    struct rand r;
    rand_init(&r, 23);
    for (int world = 0; world < 1000; world++) {
        const struct other o = {.ahead_ns = (int64_t)rand_below(&r, 20000) * ms - 10 * s,
                                .ppm = (int64_t)rand_below(&r, 99) - 49};
        struct clock_bound b = {0};
        int64_t at = (int64_t)rand_below(&r, 1000) * s;
        for (int i = 0; i < 20; i++) {
            struct clock_sample q =
                ask(&o, at, 1 + (int64_t)rand_below(&r, 7000000), (int64_t)rand_below(&r, 50000),
                    1 + (int64_t)rand_below(&r, 7000000));
            assert_int_equal(clock_bound_add(&b, &q), 0);
            expect_holds(&b, &o, q.t4);
            at = q.t4 + (int64_t)rand_below(&r, 2000) * ms;
            expect_holds(&b, &o, at);
        }
    }
}

static void test_clock_that_is_set_is_seen_and_known_anew(void **state) {
    struct other o = {.ahead_ns = 0};
    struct clock_bound b = {0};
    struct clock_sample q = ask(&o, s, 100000, 1000, 100000);
    assert_int_equal(clock_bound_add(&b, &q), 0);
    o.ahead_ns = 30 * ms;
    q = ask(&o, 2 * s, 100000, 1000, 100000);
    assert_int_equal(clock_bound_add(&b, &q), -ESTALE);
    assert_int_equal(b.steps, 1);
    expect_holds(&b, &o, 2 * s);
}

static void test_sample_that_no_clock_makes_is_not_taken(void **state) {
    struct clock_bound b = {0};
    static const struct clock_sample rows[] = {
        {10, 5, 6, 9},         /* answered before it was asked */
        {0, 8, 7, 10},         /* their clock goes back */
        {0, 100, 1000000, 10}, /* there for longer than on the way */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_int_equal(clock_bound_add(&b, &rows[i]), -EINVAL);
    assert_int_equal(b.samples, 0);
}

static void test_order_closer_than_the_bound_is_unknown(void **state) {
    const struct other o = {.ahead_ns = 7 * s};
    struct clock_bound b = {0};
    struct clock_sample q = ask(&o, s, ms, 1000, ms);
    assert_int_equal(clock_bound_add(&b, &q), 0);
    assert_int_equal(clock_bound_order(&b, there(&o, s), s), CLOCK_ORDER_UNKNOWN);
    assert_int_equal(clock_bound_order(&b, there(&o, s) + ms / 2, s), CLOCK_ORDER_UNKNOWN);
    assert_int_equal(clock_bound_order(&b, there(&o, s) - 3 * ms, s), CLOCK_ORDER_BEFORE);
    assert_int_equal(clock_bound_order(&b, there(&o, s) + 3 * ms, s), CLOCK_ORDER_AFTER);
    /* An hour later it may have drifted by 360 ms. */
    int64_t later = 3601 * s;
    assert_int_equal(clock_bound_order(&b, there(&o, later) + 3 * ms, later), CLOCK_ORDER_UNKNOWN);
    assert_int_equal(clock_bound_order(&b, there(&o, later) + 400 * ms, later), CLOCK_ORDER_AFTER);
}

/* What they stamp happened within what is told, also before the last sample and long after it; and never
 * after it was heard of. */
static void test_what_they_stamp_happened_within_its_bound(void **state) {
    struct rand r;
    rand_init(&r, 29);
    for (int world = 0; world < 1000; world++) {
        const struct other o = {.ahead_ns = (int64_t)rand_below(&r, 20000) * ms - 10 * s,
                                .ppm = (int64_t)rand_below(&r, 201) - 100};
        struct clock_bound b = {0};
        struct clock_stamp stamp;
        int64_t at = 100 * s + (int64_t)rand_below(&r, 1000) * s;
        assert_false(clock_bound_stamp(&b, at, 0, at, &stamp));
        for (int i = 0; i < 10; i++) {
            struct clock_sample q = ask(&o, at, 1 + (int64_t)rand_below(&r, 3000000), 1000,
                                        1 + (int64_t)rand_below(&r, 3000000));
            assert_int_equal(clock_bound_add(&b, &q), 0);
            for (int k = 0; k < 10; k++) {
                int64_t truth = q.t4 - 2 * s + (int64_t)rand_below(&r, 4000) * ms;
                int64_t late = k % 2 ? (int64_t)rand_below(&r, 9000000) : 0, done = truth + late;
                int64_t heard = (done > q.t4 ? done : q.t4) + (int64_t)rand_below(&r, 5000000);
                assert_true(clock_bound_stamp(&b, there(&o, truth + late), late, heard, &stamp));
                assert_true(stamp.bound_ns > 0 && stamp.there_ns == there(&o, done));
                assert_true(stamp.t_ns + stamp.bound_ns >= truth - 1);
                assert_true(stamp.t_ns - stamp.bound_ns <= truth + 1);
                assert_true(stamp.t_ns <= heard);
            }
            at += s;
        }
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_known_before_the_first_sample),
        cmocka_unit_test(test_one_way_that_is_slow_does_not_move_the_bound_off_the_truth),
        cmocka_unit_test(test_offset_and_drift_lie_inside_in_each_of_many_worlds),
        cmocka_unit_test(test_clock_that_is_set_is_seen_and_known_anew),
        cmocka_unit_test(test_sample_that_no_clock_makes_is_not_taken),
        cmocka_unit_test(test_order_closer_than_the_bound_is_unknown),
        cmocka_unit_test(test_what_they_stamp_happened_within_its_bound),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
