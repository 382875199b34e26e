#include "scenarios/jobs/ranktrain/fixed_point.h"
#include "scenarios/jobs/ranktrain/data/draw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void test_values_become_whole_units_rounded_to_even(void **state) {
    (void)state;
    int64_t sum[6] = {0, 0, 0, 0, 0, 10};
    float x[6] = {1.0f, -1.0f, 0x1p-32f, 0x1p-33f, 0x3p-33f, -0x1p-31f};
    assert_true(fixed_point_add(sum, x, 6));
    assert_true(sum[0] == INT64_C(1) << 32);
    assert_true(sum[1] == -(INT64_C(1) << 32));
    assert_int_equal(sum[2], 1);
    assert_int_equal(sum[3], 0);
    assert_int_equal(sum[4], 2);
    assert_int_equal(sum[5], 8);
    assert_true(fixed_point_of(2.5) == INT64_C(5) << 31);
    assert_true(fixed_point_value(fixed_point_of(-0.75)) == -0.75);
}

static void test_every_element_of_any_length_is_added(void **state) {
    (void)state;
    static float x[1500];
    static int64_t sum[1501];
    uint64_t seed = 1;
    for (size_t n = 0; n <= 1500; n += 1 + n / 7) {
        for (size_t i = 0; i < 1501; i++)
            sum[i] = (int64_t)i;
        for (size_t i = 0; i < n; i++)
            x[i] = (float)(draw_unit(&seed) * 200 - 100);
        assert_true(fixed_point_add(sum, x, n));
        for (size_t i = 0; i < 1501; i++) {
            int64_t added = i < n ? (int64_t)llrint((double)x[i] * FIXED_POINT_ONE) : 0;
            assert_true(sum[i] == (int64_t)i + added);
        }
    }
}

static void test_the_order_of_addition_does_not_matter(void **state) {
    (void)state;
    float x[12], up = 0, down = 0;
    int64_t a = 0, b = 0;
    uint64_t seed = 7;
    for (int i = 0; i < 12; i++)
        x[i] = (float)(draw_unit(&seed) * (i % 3 ? 1e-4 : 1e4));
    for (int i = 0; i < 12; i++) {
        fixed_point_add(&a, &x[i], 1);
        fixed_point_add(&b, &x[11 - i], 1);
        up += x[i];
        down += x[11 - i];
    }
    assert_true(a == b);
    assert_true(up != down);
}

static void test_what_does_not_fit_is_refused(void **state) {
    (void)state;
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY, 0x1p18f, -0x1p18f, 1e30f};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        float x[600] = {0};
        int64_t sum[600] = {0};
        x[13 * i + 500] = bad[i];
        assert_false(fixed_point_add(sum, x, 600));
    }
    float most[2] = {262143.9f, -262143.9f};
    int64_t sum[2] = {0};
    assert_true(fixed_point_add(sum, most, 2));
    assert_true(sum[0] == (int64_t)llrint((double)most[0] * FIXED_POINT_ONE));
    assert_true(sum[0] == -sum[1]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_become_whole_units_rounded_to_even),
        cmocka_unit_test(test_every_element_of_any_length_is_added),
        cmocka_unit_test(test_the_order_of_addition_does_not_matter),
        cmocka_unit_test(test_what_does_not_fit_is_refused),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
