#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/play/suite.h"

static void test_the_exit_code_of_many(void **state) {
    (void)state;
    static const struct {
        int codes[4];
        size_t n;
        int all;
    } table[] = {
        {{0}, 1, 0},          {{0, 4}, 2, 0},       {{4, 4}, 2, 4},    {{0, 2, 4}, 3, 2},
        {{2, 3}, 2, 3},       {{3, 5}, 2, 5},       {{5, 1}, 2, 1},    {{1, 130}, 2, 130},
        {{0, 1, 2, 3}, 4, 1}, {{0, 0, 0, 5}, 4, 5}, {{4, 2, 0}, 3, 2},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        assert_int_equal(suite_exit_code(table[i].codes, table[i].n), table[i].all);
}

/* Against the figures that textbooks give. */
static void test_a_rate_of_failures_has_an_interval(void **state) {
    (void)state;
    static const struct {
        size_t failed, n;
        double low, high;
    } table[] = {
        {0, 10, 0, 0.2775},        {10, 10, 0.7225, 1}, {1, 20, 0.0089, 0.2361},
        {50, 100, 0.4038, 0.5962}, {0, 200, 0, 0.0188},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        double low, high;
        suite_failure_rate(table[i].failed, table[i].n, &low, &high);
        assert_true(low > table[i].low - 1e-3 && low < table[i].low + 1e-3);
        assert_true(high > table[i].high - 1e-3 && high < table[i].high + 1e-3);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_exit_code_of_many),
        cmocka_unit_test(test_a_rate_of_failures_has_an_interval),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
