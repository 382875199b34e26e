#include "agent/store/token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void test_a_token_is_printable_and_not_endless(void **state) {
    (void)state;
    char text[TOKEN_MAX + 2];
    struct err err = {0};
    memset(text, 'x', sizeof(text) - 1);
    text[TOKEN_MAX + 1] = '\0';
    assert_true(token_check(text, &err) < 0);
    assert_non_null(strstr(err.msg, "1 to 512"));
    text[TOKEN_MAX] = '\0';
    assert_int_equal(token_check(text, NULL), 0);
    assert_true(token_check("", NULL) < 0);
    assert_true(token_check("a b", NULL) < 0);
    assert_true(token_check("a\nb", NULL) < 0);
    assert_true(token_check("\xc3\xa4", NULL) < 0);
}

static void test_only_the_whole_token_is_shown(void **state) {
    (void)state;
    assert_true(token_shown("Bearer abc", "abc"));
    assert_false(token_shown("Bearer ab", "abc"));
    assert_false(token_shown("Bearer abcabc", "abc"));
    assert_false(token_shown("Bearer abd", "abc"));
    assert_false(token_shown("Bearer  abc", "abc"));
    assert_false(token_shown("Bearer ", "abc"));
    assert_false(token_shown("abc", "abc"));
    assert_false(token_shown("", "abc"));
    assert_false(token_shown(NULL, "abc"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_token_is_printable_and_not_endless),
        cmocka_unit_test(test_only_the_whole_token_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
