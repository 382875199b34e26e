/* What a probe prints, and whether that is within its tolerance. */
#include "harness/scenario/scenario.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void test_what_is_printed_is_compared_as_the_tolerance_says(void **state) {
    (void)state;
    static const struct {
        const char *tolerance, *said;
        bool fits;
    } rows[] = {
        {NULL, "whatever", true}, {"/^ok$/", "ok", true}, {"/^ok$/", "not ok", false},
        {">= 3", "3", true},      {">= 3", "2.9", false}, {"< 0.5", "loss 0.25\n", true},
        {"< 0.5", "loss", false}, {"<3", "", false},      {"1..5", "5", true},
        {"1..5", "5.1", false},   {"7", "x 7", true},     {"7", "8", false},
        {">= 3", "nan", false},   {"<= 3", "3 4", false}, {"== 0", "-0", true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (tolerance_fits(rows[i].tolerance, rows[i].said) != rows[i].fits)
            fail_msg("\"%s\" within %s", rows[i].said, rows[i].tolerance);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_printed_is_compared_as_the_tolerance_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
