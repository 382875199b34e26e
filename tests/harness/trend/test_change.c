/* A change: the place from which on values are higher. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/trend/change.h"

#include "base/rand.h"

#include <math.h>

static void test_a_step_is_found_where_it_is(void **state) {
    static const double v[] = {5, 4, 6, 5, 4, 6, 9, 8, 9, 10, 8, 9};
    double p;
    assert_int_equal(change_find(v, 12, &p), 6);
    /* K is 36: exp(-6 * 36^2 / (12^3 + 12^2)) */
    assert_true(fabs(p - exp(-6.0 * 36 * 36 / (1728 + 144))) < 1e-12);
}

static void test_what_falls_is_no_change_for_the_worse(void **state) {
    static const double v[] = {9, 9, 9, 9, 5, 5, 5, 5}, flat[] = {3, 3, 3, 3};
    double p;
    assert_int_equal(change_find(v, 8, &p), 0);
    assert_true(p == 1);
    assert_int_equal(change_find(flat, 4, &p), 0);
    assert_int_equal(change_find(flat, 0, &p), 0);
    assert_int_equal(change_find(flat, 1, &p), 0);
}

/* Of 500 series of noise at most 5 % have a p below 5 %. */
static void test_noise_seldom_has_one(void **state) {
    struct rand r;
    int found = 0;
    rand_init(&r, 4);
    for (int k = 0; k < 500; k++) {
        double v[40], p;
        for (int i = 0; i < 40; i++)
            v[i] = rand_unit(&r);
        change_find(v, 40, &p);
        found += p < 0.05;
    }
    assert_in_range(found, 1, 25);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_is_found_where_it_is),
        cmocka_unit_test(test_what_falls_is_no_change_for_the_worse),
        cmocka_unit_test(test_noise_seldom_has_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
