/* Characters: what RFC 3629 calls one, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/utf8.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *bytes;
    int length;
    unsigned c;
} rows[] = {
    {"a", 1, 'a'},
    {"\x7f", 1, 0x7f},
    {"\xc2\x80", 2, 0x80},
    {"\xc3\xa9", 2, 0xe9},
    {"\xdf\xbf", 2, 0x7ff},
    {"\xe0\xa0\x80", 3, 0x800},
    {"\xe2\x80\xae", 3, 0x202e},
    {"\xed\x9f\xbf", 3, 0xd7ff},
    {"\xee\x80\x80", 3, 0xe000},
    {"\xef\xbf\xbf", 3, 0xffff},
    {"\xf0\x90\x80\x80", 4, 0x10000},
    {"\xf3\xa0\x80\x81", 4, 0xe0001},
    {"\xf4\x8f\xbf\xbf", 4, 0x10ffff},
    /* Begun, with nothing behind it. */
    {"\xc2", -1, 0},
    {"\xe2", -1, 0},
    {"\xe2\x80", -1, 0},
    {"\xf0", -1, 0},
    {"\xf0\x9f\x98", -1, 0},
    /* Begun, and something else behind it. */
    {"\xc2"
     "a",
     0, 0},
    {"\xe2\x80"
     "a",
     0, 0},
    {"\xe2\xe2\x80", 0, 0},
    {"\xf0\x9f\x98\xc2", 0, 0},
    /* Longer than it must be. */
    {"\xc0\x80", 0, 0},
    {"\xc1\xbf", 0, 0},
    {"\xe0\x80\x9b", 0, 0},
    {"\xe0\x9f\xbf", 0, 0},
    {"\xf0\x80\x80\x9b", 0, 0},
    {"\xf0\x8f\xbf\xbf", 0, 0},
    {"\xf0\x8f", 0, 0},
    /* Surrogates, and what lies above all. */
    {"\xed\xa0\x80", 0, 0},
    {"\xed\xbf\xbf", 0, 0},
    {"\xf4\x90\x80\x80", 0, 0},
    {"\xf5\x80\x80\x80", 0, 0},
    {"\xff", 0, 0},
    {"\xfe", 0, 0},
    /* The rest of one. */
    {"\x80", 0, 0},
    {"\x9b", 0, 0},
    {"\xbf", 0, 0},
};

static void test_each_row_is_read_as_it_says(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        unsigned c = 7;
        int length = utf8_read(rows[i].bytes, strlen(rows[i].bytes), &c);
        if (length != rows[i].length || c != (length > 0 ? rows[i].c : 7))
            fail_msg("row %zu: %d, U+%04X", i, length, c);
    }
}

static void test_what_stands_behind_a_character_is_not_looked_at(void **state) {
    (void)state;
    assert_int_equal(utf8_read("\xe2\x80\xae\xff", 4, NULL), 3);
    assert_int_equal(utf8_read("\xe2\x80\xae", 2, NULL), -1);
    assert_int_equal(utf8_read("", 0, NULL), -1);
    assert_int_equal(utf8_read("", 1, NULL), 1); /* a NUL is a character */
}

static int put(unsigned c, char *to) {
    if (c < 0x80)
        return sprintf(to, "%c", (char)c), 1;
    if (c < 0x800)
        return sprintf(to, "%c%c", (char)(0xc0 | c >> 6), (char)(0x80 | (c & 63)));
    if (c < 0x10000)
        return sprintf(to, "%c%c%c", (char)(0xe0 | c >> 12), (char)(0x80 | (c >> 6 & 63)),
                       (char)(0x80 | (c & 63)));
    return sprintf(to, "%c%c%c%c", (char)(0xf0 | c >> 18), (char)(0x80 | (c >> 12 & 63)),
                   (char)(0x80 | (c >> 6 & 63)), (char)(0x80 | (c & 63)));
}

static void test_every_character_is_one_and_no_surrogate_is(void **state) {
    (void)state;
    for (unsigned c = 0; c < 0x110000; c++) {
        char bytes[8];
        unsigned read = 0;
        int n = put(c, bytes);
        bool surrogate = c >= 0xd800 && c < 0xe000;
        assert_int_equal(utf8_read(bytes, (size_t)n, &read), surrogate ? 0 : n);
        assert_int_equal(read, surrogate ? 0 : c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_row_is_read_as_it_says),
        cmocka_unit_test(test_what_stands_behind_a_character_is_not_looked_at),
        cmocka_unit_test(test_every_character_is_one_and_no_surrogate_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
