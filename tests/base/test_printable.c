/* Text that somebody else wrote, on a terminal: what it may not do there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/json.h"
#include "base/printable.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void assert_shown(const char *s, size_t n, int how, const char *shown) {
    struct buf out = {0};
    char *own = malloc(n ? n : 1); /* of its own length: what is read behind it is seen */
    memcpy(own, s, n);
    printable_put(&out, own, n, how);
    assert_string_equal(buf_str(&out), shown);
    free(own);
    buf_fini(&out);
}

static void test_what_moves_or_turns_or_hides_is_spelled_out(void **state) {
    (void)state;
    static const struct {
        const char *text, *shown;
    } rows[] = {
        {"plain, gr\u00fcn, \u4f60\u597d, \U0001f600",
         "plain, gr\u00fcn, \u4f60\u597d, \U0001f600"},
        {"back\\slash \\x1b", "back\\slash \\x1b"},
        {"\033[2J\033]0;title\a", "\\x1b[2J\\x1b]0;title\\x07"},
        {"a\nb\tc\rd\be\vf\x7f", "a\\nb\\tc\\rd\\x08e\\x0bf\\x7f"},
        {"\302\233"
         "2J \302\205 \302\237",
         "\\u009b2J \\u0085 \\u009f"}, /* C1 */
        {"\u202aa\u202bb\u202cc\u202dd\u202ee", "\\u202aa\\u202bb\\u202cc\\u202dd\\u202ee"},
        {"\u2066a\u2067b\u2068c\u2069d", "\\u2066a\\u2067b\\u2068c\\u2069d"},
        {"\u200ea\u200fb\u061cc", "\\u200ea\\u200fb\\u061cc"},
        {"a\u2028b\u2029c", "a\\u2028b\\u2029c"},
        {"n\u200b0\u200c\u200d\u2060\ufeff\u00ad", "n\\u200b0\\u200c\\u200d\\u2060\\ufeff\\u00ad"},
        {"\U000e0001\U000e0041\U000e007f", "\\U000e0001\\U000e0041\\U000e007f"},
        {"\uffff\U0001fffe", "\\uffff\\U0001fffe"},
        {"\x9b"
         "2J\xff",
         "\\x9b2J\\xff"}, /* C1 of eight bits */
        {"\xc0\x9b \xe0\x80\x9b \xed\xa0\x80", "\\xc0\\x9b \\xe0\\x80\\x9b \\xed\\xa0\\x80"},
        {"\xe2\x80", "\\xe2\\x80"},
        {"\xf0\x9f\x98", "\\xf0\\x9f\\x98"},
        {"\xe2\033[m", "\\xe2\\x1b[m"}, /* a character that is cut off swallows nothing */
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_shown(rows[i].text, strlen(rows[i].text), 0, rows[i].shown);
        assert_shown(rows[i].shown, strlen(rows[i].shown), 0, rows[i].shown); /* and no more */
    }
    assert_shown("a\0b", 3, 0, "a\\x00b");
}

static void test_lines_and_tabs_stay_where_there_may_be_several(void **state) {
    (void)state;
    assert_shown("a\n\tb\r\n\033", 7, PRINTABLE_LINES, "a\n\tb\\r\n\\x1b");
}

static void test_colours_stay_where_they_may(void **state) {
    (void)state;
    static const char *const kept[] = {"\033[m", "\033[0m", "\033[1;32m", "\033[38:2:1:2:3m"};
    static const char *const spelled[][2] = {
        {"\033[2J", "\\x1b[2J"},     {"\033[", "\\x1b["}, {"\033[1", "\\x1b[1"},
        {"\033[?25m", "\\x1b[?25m"}, {"\033m", "\\x1bm"}, {"\033", "\\x1b"},
    };
    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
        assert_shown(kept[i], strlen(kept[i]), PRINTABLE_COLORS, kept[i]);
    for (size_t i = 0; i < sizeof(spelled) / sizeof(*spelled); i++)
        assert_shown(spelled[i][0], strlen(spelled[i][0]), PRINTABLE_COLORS, spelled[i][1]);
    char endless[200] = "\033[";
    memset(endless + 2, '1', sizeof(endless) - 4);
    endless[sizeof(endless) - 2] = 'm';
    struct buf out = {0};
    printable_put(&out, endless, sizeof(endless) - 1, PRINTABLE_COLORS);
    assert_null(strchr(buf_str(&out), '\033'));
    buf_fini(&out);
}

static void test_what_is_shown_holds_nothing_that_is_not_to_be(void **state) {
    (void)state;
    char bytes[3], shown[PRINTABLE_MAX];
    for (unsigned i = 0; i < 1 << 24; i += 7) {
        bytes[0] = (char)(i >> 16), bytes[1] = (char)(i >> 8), bytes[2] = (char)i;
        size_t taken = printable_next(bytes, 3, 0, shown);
        assert_true(taken >= 1 && taken <= 3);
        for (const char *at = shown; *at;) {
            unsigned c = 0;
            int n = utf8_read(at, strlen(at), &c);
            assert_true(n > 0 && printable_is(c));
            at += n;
        }
    }
}

static void test_a_copy_fits_and_is_cut_between_characters(void **state) {
    (void)state;
    char room[8];
    printable_copy(room, sizeof(room), "ab\033\033");
    assert_string_equal(room, "ab\\x1b");
    printable_copy(room, sizeof(room), "abcdefg");
    assert_string_equal(room, "abcdefg");
    printable_copy(room, sizeof(room), "abcdef\u00fc");
    assert_string_equal(room, "abcdef");
    printable_copy(room, 1, "a");
    assert_string_equal(room, "");
}

static void test_what_may_go_on_is_told_from_what_has_ended(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t unfinished;
    } rows[] = {
        {"", 0},
        {"a", 0},
        {"a\u00fc", 0},
        {"a\xc3", 1},
        {"\xe2\x80", 2},
        {"\xf0\x9f", 2},
        {"\xf0\x9f\x98", 3},
        {"\xff", 0},
        {"\xe2\x80\xae", 0},
        {"\x80\x80\x80", 0},
        {"\xed\xa0", 0},
        {"\xc3\xc3", 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (printable_unfinished(rows[i].text, strlen(rows[i].text)) != rows[i].unfinished)
            fail_msg("row %zu", i);
}

static void test_an_error_is_one_line_whatever_it_quotes(void **state) {
    (void)state;
    struct err e = {0};
    err_say(&e, -EINVAL, "%s: not a name", "n0\nrankquake: passed\033[2J\u202e");
    assert_string_equal(e.msg, "n0\\nrankquake: passed\\x1b[2J\\u202e: not a name");
    err_wrap(&e, "%s: ", "\x9b");
    assert_string_equal(e.msg, "\\x9b: n0\\nrankquake: passed\\x1b[2J\\u202e: not a name");
    err_set(&e, -ENOENT, "open %s", "\a");
    assert_string_equal(e.msg, "open \\x07: No such file or directory");
    char word[600];
    memset(word, 'x', sizeof(word));
    memcpy(word + 510, "\u20ac", 4); /* its end does not fit any more */
    err_say(&e, -EINVAL, "%s", word);
    assert_int_equal(strlen(e.msg), 510);
}

static void test_json_says_the_same_and_shows_nothing_of_it(void **state) {
    (void)state;
    static const char text[] = "\033\x7f\302\233\u202e\u200b\U000e0041\ufeff \u00fc\U0001f600";
    struct buf out = {0};
    struct arena a = {0};
    struct json_writer w = {.out = &out};
    json_put_string(&w, NULL, text);
    assert_string_equal(buf_str(&out), "\"\\u001b\\u007f\\u009b\\u202e\\u200b\\udb40\\udc41\\ufeff "
                                       "\u00fc\U0001f600\"");
    assert_string_equal(json_string(json_parse(&a, out.data, out.len, NULL), ""), text);
    buf_clear(&out);
    w = (struct json_writer){.out = &out};
    json_put_string(&w, NULL, "\xc0\x9b \xed\xa0\x80 \xe2\x80");
    assert_string_equal(buf_str(&out), "\"\ufffd\ufffd \ufffd\ufffd\ufffd \ufffd\ufffd\"");
    arena_fini(&a);
    buf_fini(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_moves_or_turns_or_hides_is_spelled_out),
        cmocka_unit_test(test_lines_and_tabs_stay_where_there_may_be_several),
        cmocka_unit_test(test_colours_stay_where_they_may),
        cmocka_unit_test(test_what_is_shown_holds_nothing_that_is_not_to_be),
        cmocka_unit_test(test_a_copy_fits_and_is_cut_between_characters),
        cmocka_unit_test(test_what_may_go_on_is_told_from_what_has_ended),
        cmocka_unit_test(test_an_error_is_one_line_whatever_it_quotes),
        cmocka_unit_test(test_json_says_the_same_and_shows_nothing_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
