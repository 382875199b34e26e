/* Failures: Fisher's exact test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/trend/failures.h"

#include <math.h>

static void assert_near(double value, double expected) {
    if (fabs(value - expected) > 1e-9)
        fail_msg("%.12g, and not %.12g", value, expected);
}

/* Who tastes four cups of eight right does so by chance once in seventy times. */
static void test_the_lady_tasting_tea(void **state) {
    assert_near(failures_p(4, 4, 0, 4), 1.0 / 70);
    assert_near(failures_p(3, 4, 1, 4), 17.0 / 70);
    assert_near(failures_p(0, 4, 4, 4), 1);
}

static void test_two_of_ten_where_none_of_a_hundred_had_failed(void **state) {
    assert_near(failures_p(1, 10, 0, 100), 10.0 / 110);
    assert_near(failures_p(2, 10, 0, 100), (10.0 * 9) / (110.0 * 109));
    assert_true(failures_p(2, 10, 20, 100) > 0.5);
}

static void test_of_nothing_nothing_follows(void **state) {
    assert_near(failures_p(0, 0, 1, 2), 1);
    assert_near(failures_p(1, 2, 0, 0), 1);
    assert_near(failures_p(3, 2, 0, 5), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_lady_tasting_tea),
        cmocka_unit_test(test_two_of_ten_where_none_of_a_hundred_had_failed),
        cmocka_unit_test(test_of_nothing_nothing_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
