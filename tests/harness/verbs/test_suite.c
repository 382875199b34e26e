#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/verbs/suite.h"

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

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_exit_code_of_many)};
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
