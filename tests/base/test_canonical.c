#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/canonical.h"

#include <string.h>

static struct arena arena;

static int tear_down(void **state) {
    (void)state;
    arena_fini(&arena);
    return 0;
}

static void assert_written(const char *text, const char *as) {
    BUF_FINI struct buf out = {0};
    const struct json *j = json_parse(&arena, text, strlen(text), NULL);
    assert_non_null(j);
    assert_int_equal(canonical_put(j, &out, NULL), 0);
    assert_string_equal(buf_str(&out), as);
}

static void assert_unwritten(const char *text, const char *why) {
    BUF_FINI struct buf out = {0};
    struct err err = {0};
    const struct json *j = json_parse(&arena, text, strlen(text), NULL);
    assert_non_null(j);
    assert_true(canonical_put(j, &out, &err) < 0);
    assert_non_null(strstr(err.msg, why));
}

static void test_members_are_sorted_and_blanks_left_out(void **state) {
    (void)state;
    assert_written(" { \"b\" : [ 1 , true , null ] , \"a\" : { \"d\" : -7 , \"c\" : \"x\" } } ",
                   "{\"a\":{\"c\":\"x\",\"d\":-7},\"b\":[1,true,null]}");
}

/* The example of RFC 8785, section 3.2.3, without the member whose name is a line feed's escape. */
static void test_names_are_ordered_as_utf16_has_them(void **state) {
    (void)state;
    assert_written("{\"\\u20ac\":1,\"\\r\":2,\"\\ufb33\":3,\"1\":4,\"\\ud83d\\ude00\":5,"
                   "\"\\u0080\":6,\"\\u00f6\":7}",
                   "{\"\\r\":2,\"1\":4,\"\xc2\x80\":6,\"\xc3\xb6\":7,\"\xe2\x82\xac\":1,"
                   "\"\xf0\x9f\x98\x80\":5,\"\xef\xac\xb3\":3}");
}

static void test_a_text_has_the_escapes_that_it_must_have(void **state) {
    (void)state;
    assert_written("\"\\u0041\\/\\u000f\\n\\u0022\\\\\\u007f\"", "\"A/\\u000f\\n\\\"\\\\\x7f\"");
}

static void test_what_has_no_one_form_is_refused(void **state) {
    (void)state;
    assert_unwritten("[1.5]", "no whole one");
    assert_unwritten("[9007199254740992]", "larger than 2^53 - 1");
    assert_unwritten("{\"a\":1,\"a\":2}", "\"a\" twice");
    assert_written("9007199254740991", "9007199254740991");
}

static void test_only_the_canonical_form_is_read(void **state) {
    (void)state;
    static const char good[] = "{\"a\":[1,\"\xc3\xa9\"],\"b\":{}}";
    static const char *const bad[] = {"{\"a\":[1,\"\xc3\xa9\"],\"b\":{}}\n",
                                      " {\"a\":1}",
                                      "{\"b\":1,\"a\":2}",
                                      "{\"a\":01}",
                                      "{\"a\":\"\\u0041\"}",
                                      "{\"a\":1,}",
                                      "{\"a\":-0}",
                                      "[1e2]",
                                      "\"\xff\"",
                                      "\"\xed\xa0\x80\"",
                                      "{\"a\":[1",
                                      ""};
    assert_non_null(canonical_read(&arena, good, strlen(good), NULL));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct err err = {0};
        assert_null(canonical_read(&arena, bad[i], strlen(bad[i]), &err));
        assert_true(err.code < 0);
    }
}

/* Whatever byte is put in place of any other, it is another value or none. */
static void test_every_changed_byte_is_another_value(void **state) {
    (void)state;
    static const char good[] = "{\"a\":[1,\"x\xc3\xa9\",true],\"b\":{\"c\":null}}";
    char text[sizeof(good)];
    for (size_t i = 0; i < strlen(good); i++)
        for (int c = 0; c < 256; c++) {
            BUF_FINI struct buf again = {0};
            memcpy(text, good, sizeof(good));
            text[i] = (char)c;
            const struct json *j = canonical_read(&arena, text, strlen(good), NULL);
            if (!j || text[i] == good[i])
                continue;
            assert_int_equal(canonical_put(j, &again, NULL), 0);
            assert_string_not_equal(buf_str(&again), good);
        }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_members_are_sorted_and_blanks_left_out, tear_down),
        cmocka_unit_test_teardown(test_names_are_ordered_as_utf16_has_them, tear_down),
        cmocka_unit_test_teardown(test_a_text_has_the_escapes_that_it_must_have, tear_down),
        cmocka_unit_test_teardown(test_what_has_no_one_form_is_refused, tear_down),
        cmocka_unit_test_teardown(test_only_the_canonical_form_is_read, tear_down),
        cmocka_unit_test_teardown(test_every_changed_byte_is_another_value, tear_down),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
