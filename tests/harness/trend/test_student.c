/* Student's distribution: quantiles as tables have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/trend/student.h"

#include <math.h>

static void test_quantiles_are_those_of_the_tables(void **state) {
    static const struct {
        double p, freedom, t;
    } rows[] = {
        {0.05, 1, 6.3138},   {0.05, 5, 2.0150},  {0.05, 10, 1.8125},   {0.01, 1, 31.8205},
        {0.01, 2, 6.9646},   {0.01, 9, 2.8214},  {0.01, 30, 2.4573},   {0.025, 4, 2.7764},
        {0.005, 20, 2.8453}, {0.001, 8, 4.5008}, {0.01, 1e6, 2.32635},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        double t = student_quantile(rows[i].p, rows[i].freedom);
        if (fabs(t - rows[i].t) > 1e-4)
            fail_msg("%g with %g: %g, and not %g", rows[i].p, rows[i].freedom, t, rows[i].t);
    }
}

static void test_tails(void **state) {
    assert_true(fabs(student_above(0, 7) - 0.5) < 1e-12);
    assert_true(fabs(student_above(1, 1) - 0.25) < 1e-9); /* Cauchy's */
    assert_true(fabs(student_above(-1, 1) - 0.75) < 1e-9);
    assert_true(fabs(student_above(sqrt(2), 2) - 0.5 * (1 - sqrt(2) / 2)) < 1e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantiles_are_those_of_the_tables),
        cmocka_unit_test(test_tails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
