#include "agent/store/etcd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const char *words(const char *line) {
    static char text[64];
    etcd_words(line, text, sizeof(text));
    return text;
}

static void test_of_a_line_of_its_log_the_message_is_left(void **state) {
    (void)state;
    assert_string_equal(words("2026-01-02 03:04:05.678 C | etcdmain: listen tcp 127.0.0.1:1: bind"),
                        "etcdmain: listen tcp 127.0.0.1:1: bind");
    assert_string_equal(
        words("{\"level\":\"fatal\",\"msg\":\"discovery failed\",\"error\":\"bind\"}"),
        "discovery failed: bind");
    assert_string_equal(words("{\"level\":\"info\",\"msg\":\"now serving\"}"), "now serving");
}

static void test_what_is_no_line_of_its_log_stays_as_it_is(void **state) {
    (void)state;
    assert_string_equal(words("{\"level\":\"info\"}"), "{\"level\":\"info\"}");
    assert_string_equal(words("panic: {"), "panic: {");
    assert_string_equal(words(""), "");
    assert_int_equal(
        strlen(words("0123456789012345678901234567890123456789012345678901234567890123456789")),
        63);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_a_line_of_its_log_the_message_is_left),
        cmocka_unit_test(test_what_is_no_line_of_its_log_stays_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
