/* escape: what stands for a %s is escaped, and all else is as printf has it. */
#include "reports/escape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void test_text_is_escaped_and_markup_is_not(void **state) {
    (void)state;
    struct buf out = {0};
    escape_printf(&out, "<b title=\"%s\">%s</b>%s", "a \"b\"", "<i>&", "");
    assert_string_equal(buf_str(&out), "<b title=\"a &quot;b&quot;\">&lt;i&gt;&amp;</b>");
    buf_fini(&out);
}

static void test_a_precision_cuts_the_text_before_it_is_escaped(void **state) {
    (void)state;
    struct buf out = {0};
    escape_printf(&out, "%.*s|%.2s|%.9s", 2, "a<b", "<<<", "ab");
    assert_string_equal(buf_str(&out), "a&lt;|&lt;&lt;|ab");
    buf_fini(&out);
}

static void test_numbers_are_as_printf_has_them(void **state) {
    (void)state;
    struct buf out = {0};
    escape_printf(&out, "%d %u %zu %lld %llu %c %.2f%% %.3g %g %.*f %f", -1, 4000000000U, SIZE_MAX,
                  (long long)INT64_MIN, (unsigned long long)UINT64_MAX, 'x', 12.345, 0.00012345,
                  0.5, 1, 2.25, 1.5);
    assert_string_equal(buf_str(&out), "-1 4000000000 18446744073709551615 -9223372036854775808 "
                                       "18446744073709551615 x 12.35% 0.000123 0.5 2.2 1.500000");
    buf_fini(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_is_escaped_and_markup_is_not),
        cmocka_unit_test(test_a_precision_cuts_the_text_before_it_is_escaped),
        cmocka_unit_test(test_numbers_are_as_printf_has_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
