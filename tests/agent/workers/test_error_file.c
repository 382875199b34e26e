#include "agent/workers/error_file.h"

#include "base/buf.h"
#include "base/sys/file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static char dir[64], from[96], to[96];
static struct err err;

static int set_up(void **state) {
    (void)state;
    strcpy(dir, "/tmp/test_error_file_XXXXXX");
    assert_int_equal(file_make_temp_dir(dir, NULL), 0);
    snprintf(from, sizeof(from), "%s/error.json", dir);
    snprintf(to, sizeof(to), "%s/mine.json", dir);
    err = (struct err){0};
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    return file_remove_tree(dir, NULL);
}

static void leave(const char *text) {
    assert_int_equal(file_write(from, text, strlen(text), NULL), 0);
}

static void expect(const char *text) {
    struct buf b = {0};
    assert_int_equal(file_read(to, 4096, &b, NULL), 0);
    assert_string_equal(buf_str(&b), text);
    buf_fini(&b);
}

static void test_a_message_gets_the_workers_code_beside_it_as_torchrun_does(void **state) {
    (void)state;
    leave("{\"message\": {\"message\": \"ValueError: no\", \"errorCode\": 1, \"extraInfo\":"
          " {\"py_callstack\": \"a\\nb\", \"timestamp\": \"17\"}}, \"more\": [1, null]}");
    assert_int_equal(error_file_pass_on(from, to, -11, &err), 0);
    expect("{\"message\":{\"message\":\"ValueError: no\",\"extraInfo\":{\"py_callstack\":\"a\\nb\","
           "\"timestamp\":\"17\"},\"errorCode\":-11},\"more\":[1,null]}");
}

static void test_a_message_that_is_a_text_is_handed_on_as_it_is(void **state) {
    (void)state;
    assert_int_equal(file_write(to, "of before, and longer than what comes", 37, NULL), 0);
    leave("{\"message\": \"no\", \"timestamp\": 17}");
    assert_int_equal(error_file_pass_on(from, to, 3, &err), 0);
    expect("{\"message\":\"no\",\"timestamp\":17}");
}

static void test_a_message_that_cannot_be_read_is_said_to_be_so(void **state) {
    (void)state;
    char text[256] = "old";
    error_file_text(from, text, sizeof(text));
    assert_string_equal(text, ""); /* there is none */
    error_file_text(dir, text, sizeof(text));
    assert_non_null(strstr(text, dir));
    assert_non_null(strstr(text, "Is a directory"));
    leave("{\"message\": \"no\"}");
    error_file_text(from, text, sizeof(text));
    assert_string_equal(text, "no");
}

static void test_what_cannot_be_handed_on_leaves_what_is_there(void **state) {
    (void)state;
    char nowhere[128];
    assert_int_equal(file_write(to, "old", 3, NULL), 0);
    assert_int_equal(error_file_pass_on(from, to, 3, &err), 1);
    leave("Traceback ...");
    assert_int_equal(error_file_pass_on(from, to, 3, &err), -EBADMSG);
    assert_non_null(strstr(err.msg, from));
    leave("[1]");
    assert_int_equal(error_file_pass_on(from, to, 3, &err), -EBADMSG);
    expect("old");
    leave("{}");
    snprintf(nowhere, sizeof(nowhere), "%s/not/there", dir);
    assert_int_equal(error_file_pass_on(from, nowhere, 3, &err), -ENOENT);
    assert_non_null(strstr(err.msg, nowhere));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_a_message_gets_the_workers_code_beside_it_as_torchrun_does, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_message_that_is_a_text_is_handed_on_as_it_is, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_message_that_cannot_be_read_is_said_to_be_so, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_handed_on_leaves_what_is_there, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
