#include "agent/store/token.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Every byte, alone and at each place among others. */
static void test_each_byte_of_a_token_is_looked_at(void **state) {
    (void)state;
    for (int c = 1; c < 256; c++)
        for (int at = 0; at < 4; at++) {
            char text[] = "abcd";
            struct err err = {0};
            text[at] = (char)c;
            int expected = c > 0x20 && c < 0x7f ? 0 : -EINVAL;
            assert_int_equal(token_check(text, &err), expected);
            assert_string_equal(
                err.msg,
                expected ? "a token has 1 to 512 printable ASCII characters and no blanks" : "");
            text[1] = '\0';
            if (at == 0)
                assert_int_equal(token_check(text, NULL), expected);
        }
}

/* One bit that is another, at any place; a part; and more. */
static void test_a_token_that_differs_anywhere_is_not_shown(void **state) {
    (void)state;
    static const char token[] = "0123456789abcdef";
    for (size_t i = 0; i < strlen(token); i++)
        for (int bit = 0; bit < 7; bit++) {
            char header[64];
            snprintf(header, sizeof(header), "Bearer %s", token);
            assert_true(token_shown(header, token));
            header[7 + i] ^= (char)(1 << bit);
            assert_false(token_shown(header, token));
            snprintf(header, sizeof(header), "Bearer %.*s", (int)i, token);
            assert_false(token_shown(header, token));
            snprintf(header, sizeof(header), "Bearer %s%.*s", token, (int)i + 1, token);
            assert_false(token_shown(header, token));
        }
}

static int ones(const unsigned counts[128], unsigned least, unsigned most) {
    int n = 0;
    for (int i = 0; i < 128; i++)
        n += counts[i] >= least && counts[i] <= most;
    return n;
}

/* Of 256 that are drawn each of the 128 bits is set in some: that one is set in fewer than 48 or in more than 208 happens once
 * in 10^21. What is behind is left alone. */
static void test_a_token_is_drawn_of_as_many_bits_as_are_promised(void **state) {
    (void)state;
    unsigned counts[128] = {0};
    for (int k = 0; k < 256; k++) {
        char text[TOKEN_DRAWN + 1];
        memset(text, 'x', sizeof(text));
        token_draw(text);
        assert_int_equal(strlen(text), 32);
        assert_int_equal(text[TOKEN_DRAWN], 'x');
        assert_int_equal(strspn(text, "0123456789abcdef"), 32);
        assert_int_equal(token_check(text, NULL), 0);
        for (int i = 0; i < 128; i++) {
            char digit[2] = {text[i / 4], '\0'};
            counts[i] += strtoul(digit, NULL, 16) >> (i % 4) & 1;
        }
    }
    assert_int_equal(ones(counts, 48, 208), 128);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_token_is_printable_and_not_endless),
        cmocka_unit_test(test_only_the_whole_token_is_shown),
        cmocka_unit_test(test_each_byte_of_a_token_is_looked_at),
        cmocka_unit_test(test_a_token_that_differs_anywhere_is_not_shown),
        cmocka_unit_test(test_a_token_is_drawn_of_as_many_bits_as_are_promised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
