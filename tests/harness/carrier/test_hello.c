#include "harness/carrier/hello.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct hello heard(const char *text) {
    ARENA_FINI struct arena a = {0};
    struct hello h;
    hello_take(json_parse(&a, text, strlen(text), NULL), &h);
    return h;
}

static void test_what_is_said_is_heard(void **state) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    const struct hello said = {.version = HELLO_VERSION,
                               .uid = 1000,
                               .boot_id = "0123-4567",
                               .host = "node7",
                               .can = 1u << HELLO_CAN_PIDFDS | 1u << HELLO_CAN_ROOT};
    json_object(&w, NULL);
    hello_put(&w, &said);
    json_end_object(&w);
    struct hello h = heard(buf_str(&text));
    assert_int_equal(h.version, said.version);
    assert_int_equal(h.uid, 1000);
    assert_string_equal(h.boot_id, said.boot_id);
    assert_string_equal(h.host, said.host);
    assert_int_equal(h.can, said.can);
    assert_int_equal(hello_check(&h, "n1", NULL), 0);
}

static void test_a_host_begins_anew_with_its_kernel_or_its_first_process(void **state) {
    const struct hello before = heard("{\"boot_id\":\"a\",\"life\":\"7.12\"}");
    const struct hello booted = heard("{\"boot_id\":\"b\",\"life\":\"7.12\"}");
    const struct hello restarted = heard("{\"boot_id\":\"a\",\"life\":\"7.99\"}");
    assert_true(hello_is_another_life(&before, &booted));
    assert_true(hello_is_another_life(&before, &restarted));
    assert_false(hello_is_another_life(&before, &before));
}

static void test_other_version_is_refused_with_host_and_both_versions(void **state) {
    struct hello h = heard("{\"version\":7,\"host\":\"node7\",\"can\":[\"fly\",\"root\"]}");
    struct err err;
    assert_int_equal(h.can, 1u << HELLO_CAN_ROOT);
    assert_int_equal(hello_check(&h, "n1", &err), -EPROTO);
    assert_non_null(strstr(err.msg, "n1 (node7): it speaks version 7"));
    assert_non_null(strstr(err.msg, "and we version 2"));
}

static void test_hello_without_a_version_or_of_other_types_is_refused(void **state) {
    static const char *const rows[] = {"{}",
                                       "{\"version\":\"one\"}",
                                       "{\"version\":[1]}",
                                       "{\"version\":1.5}",
                                       "{\"version\":-1}",
                                       "{\"version\":0}"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct hello h = heard(rows[i]);
        struct err err;
        assert_int_equal(hello_check(&h, "n1", &err), -EPROTO);
        assert_int_equal(strncmp(err.msg, "n1: it speaks version ", 22), 0);
    }
}

static void test_names_longer_than_their_room_do_no_harm(void **state) {
    char text[4096];
    snprintf(text, sizeof(text), "{\"version\":1,\"host\":\"%0500d\",\"boot_id\":\"%0500d\"}", 0,
             0);
    struct hello h = heard(text);
    assert_true(strlen(h.host) < sizeof(h.host));
    assert_true(strlen(h.boot_id) < sizeof(h.boot_id));
}

static void test_this_host_says_what_it_is(void **state) {
    struct hello h;
    hello_here(&h);
    assert_int_equal(h.version, HELLO_VERSION);
    assert_int_equal(h.uid, geteuid());
    assert_int_equal(strlen(h.boot_id), 36);
    assert_true(*h.host);
    assert_int_equal(h.can >> HELLO_CAN_ROOT & 1, geteuid() == 0);
    assert_int_equal(h.can >> HELLO_CAN_DESCRIPTORS & 1, 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_said_is_heard),
        cmocka_unit_test(test_a_host_begins_anew_with_its_kernel_or_its_first_process),
        cmocka_unit_test(test_other_version_is_refused_with_host_and_both_versions),
        cmocka_unit_test(test_hello_without_a_version_or_of_other_types_is_refused),
        cmocka_unit_test(test_names_longer_than_their_room_do_no_harm),
        cmocka_unit_test(test_this_host_says_what_it_is),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
