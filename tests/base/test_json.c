#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

static struct arena arena;

static const struct json *parse(const char *text) {
    return json_parse(&arena, text, strlen(text), NULL);
}

static int tear_down(void **state) {
    (void)state;
    arena_fini(&arena);
    return 0;
}

static void test_every_type_is_read(void **state) {
    (void)state;
    const struct json *j =
        parse(" {\"a\":[1,-2.5,\"x\",true,false,null,{}],\"b\":9007199254740993} ");
    const struct json *a = json_get(j, "a");
    assert_int_equal(a->length, 7);
    assert_int_equal(json_i64(a->first, 0), 1);
    assert_true(json_number(a->first->next, 0) == -2.5);
    assert_string_equal(json_string(a->first->next->next, ""), "x");
    assert_true(json_bool(a->first->next->next->next, false));
    assert_int_equal(json_get_i64(j, "b", 0), 9007199254740993); /* no double in between */
}

static void test_wrong_types_and_absence_answer_the_default(void **state) {
    (void)state;
    const struct json *j = parse("{\"a\":\"x\",\"n\":\"42\"}");
    assert_int_equal(json_get_i64(j, "a", 7), 7);
    assert_int_equal(json_get_i64(j, "n", 7), 42); /* etcd writes numbers as strings */
    assert_int_equal(json_get_i64(NULL, "a", 7), 7);
    assert_null(json_first(json_get(j, "a")));
    assert_string_equal(json_get_string(json_get(j, "a"), "b", "none"), "none");
}

static void test_escapes_and_surrogates_become_utf8(void **state) {
    (void)state;
    assert_string_equal(json_string(parse("\"\\u00e9\\n\\u20ac\\ud83d\\ude00\\\"\\/\""), ""),
                        "\xc3\xa9\n\xe2\x82\xac\xf0\x9f\x98\x80\"/");
    assert_string_equal(json_string(parse("\"\\ud83d\""), ""), "\xef\xbf\xbd");
}

static void test_what_is_not_json_is_refused_with_its_place(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",      "{",       "[1,]",      "{\"a\" 1}", "\"abc",      "01x", "+1", "tru", "{}x",
        "[1 2]", "\"\\x\"", "\"\\u12\"", "{1:2}",     "[\"\x01\"]", "nul", "-",  "1e",  ","};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct err err = {0};
        assert_null(json_parse(&arena, bad[i], strlen(bad[i]), &err));
        assert_true(err.code < 0 && strstr(err.msg, "at byte"));
    }
}

static void test_depth_is_limited(void **state) {
    (void)state;
    char deep[4000];
    memset(deep, '[', sizeof(deep));
    assert_null(json_parse(&arena, deep, sizeof(deep), NULL));
}

static void test_text_need_not_end_with_a_nul(void **state) {
    (void)state;
    char text[3] = {'1', '2', '3'};
    assert_int_equal(json_i64(json_parse(&arena, text, 2, NULL), 0), 12);
}

static void test_what_is_written_reads_back(void **state) {
    (void)state;
    struct buf b = {0};
    struct json_writer w = {.out = &b};
    json_object(&w, NULL);
    json_put_string(&w, "s", "a\"b\\c\n\t\x01\xc3\xa9\xff");
    json_put_i64(&w, "i", INT64_MIN);
    json_put_double(&w, "d", 0.1);
    json_array(&w, "l");
    json_put_bool(&w, NULL, true);
    json_put_null(&w, NULL);
    json_end_array(&w);
    json_object(&w, "o");
    json_end_object(&w);
    json_end_object(&w);
    const struct json *j = parse(buf_str(&b));
    assert_non_null(j);
    assert_string_equal(json_get_string(j, "s", ""), "a\"b\\c\n\t\x01\xc3\xa9\xef\xbf\xbd");
    assert_true(json_get_i64(j, "i", 0) == INT64_MIN);
    assert_true(json_number(json_get(j, "d"), 0) == 0.1);
    struct buf again = {0};
    struct json_writer copy = {.out = &again};
    json_put_tree(&copy, NULL, j);
    assert_string_equal(buf_str(&again), buf_str(&b));
    buf_fini(&b);
    buf_fini(&again);
}

/* Every cut of a valid text is refused, and nothing is read behind its end (asan watches). */
static void test_every_truncation_is_refused(void **state) {
    (void)state;
    static const char whole[] = "{\"a\":[1,2.5e3,\"x\\u00e9\"],\"b\":{\"c\":null}}";
    for (size_t n = 0; n < sizeof(whole) - 1; n++) {
        char *cut = malloc(n ? n : 1);
        memcpy(cut, whole, n);
        assert_null(json_parse(&arena, cut, n, NULL));
        free(cut);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type_is_read),
        cmocka_unit_test(test_wrong_types_and_absence_answer_the_default),
        cmocka_unit_test(test_escapes_and_surrogates_become_utf8),
        cmocka_unit_test(test_what_is_not_json_is_refused_with_its_place),
        cmocka_unit_test(test_depth_is_limited),
        cmocka_unit_test(test_text_need_not_end_with_a_nul),
        cmocka_unit_test(test_what_is_written_reads_back),
        cmocka_unit_test(test_every_truncation_is_refused),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
