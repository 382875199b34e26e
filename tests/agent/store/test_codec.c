#include "agent/store/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void text_of(enum key_kind kind, const union value *v, const char *expected) {
    struct buf b = {0};
    codec_put(&b, kind, v);
    assert_string_equal(buf_str(&b), expected);
    buf_fini(&b);
}

static void comes_back(enum key_kind kind, const union value *v) {
    struct buf b = {0};
    union value back;
    codec_put(&b, kind, v);
    assert_null(strchr(buf_str(&b), '\n'));
    assert_int_equal(codec_take(kind, buf_str(&b), b.len, &back, NULL), 0);
    assert_memory_equal(&back, v, value_size(kind));
    buf_fini(&b);
}

/* Every byte of every member is set to something, so that a forgotten one is seen. */
static void test_every_value_comes_back_whole(void **state) {
    (void)state;
    union value v;
    memset(&v, 0, sizeof(v));
    v.cur = (struct cur_value){.inc = "0123456789abcdef",
                               .attempt = "a7",
                               .former = "fedcba9876543210",
                               .rounds_before = 8,
                               .hold = 1,
                               .min = 1,
                               .max = 2,
                               .max_restarts = 3,
                               .max_free_rounds = 9,
                               .restart_mode = RESTART_COUNT_NODE,
                               .on_node_loss = NODE_LOSS_GANG,
                               .timing = {4, 5, 6, 7}};
    comes_back(KEY_CUR, &v);
    memset(&v, 0, sizeof(v));
    v.member = (struct member_value){"n0", "10.0.0.1", 8, "trainer", WANT_STANDBY, 12};
    v.member.past = (struct past){"0123456789abcdef", 4, 3, 2, 1};
    v.member.stop_ns = 13;
    comes_back(KEY_MEMBER, &v);
    memset(&v, 0, sizeof(v));
    v.session.seq = INT64_MAX;
    comes_back(KEY_SESSION, &v);
    memset(&v, 0, sizeof(v));
    v.quarantine.owed = 1;
    comes_back(KEY_QUARANTINE, &v);
    v.gone.why = GONE_SILENT;
    memset(&v, 0, sizeof(v));
    comes_back(KEY_GONE, &v);
    v.lead = (struct lead_value){"00112233445566778899aabbccddeeff"};
    comes_back(KEY_LEAD, &v);
    memset(&v, 0, sizeof(v));
    v.plan = (struct plan_value){1, 2, 3, 4, 5};
    comes_back(KEY_PLAN, &v);
    memset(&v, 0, sizeof(v));
    v.ack = (struct ack_value){ACK_FENCED, "a \"quoted\" line\nand another", "10.0.0.2", 12345};
    comes_back(KEY_ACK, &v);
    memset(&v, 0, sizeof(v));
    v.done.round = 9;
    comes_back(KEY_DONE, &v);
}

static void test_the_head_comes_back_whole(void **state) {
    (void)state;
    union value v;
    memset(&v, 0, sizeof(v));
    v.head = (struct head_value){
        .round = 3,
        .phase = HEAD_CLOSED,
        .pid = "3-77-1",
        .n = 2,
        .last_round = 2,
        .last_pid = "2-77-1",
        .last_n = 3,
        .restarts = 1,
        .charged_round = 1,
        .cause = CAUSE_FAILURE,
        .failure = {.uid = "ff",
                    .node = "n1",
                    .rank = -1,
                    .local_rank = -1,
                    .pid = 4711,
                    .wait_status = 9,
                    .error = "out of memory",
                    .realtime_ns = -5},
        .world = 16,
        .master_addr = "fe80::1",
        .master_port = 12001,
        .token = "abcd",
        .outcome = OUTCOME_FAILED,
    };
    comes_back(KEY_HEAD, &v);
}

static void test_values_are_short_lines_that_people_can_read(void **state) {
    (void)state;
    union value v;
    memset(&v, 0, sizeof(v));
    text_of(KEY_SESSION, &v, "{}");
    v.session.seq = 12;
    text_of(KEY_SESSION, &v, "{\"seq\":12}");
    memset(&v, 0, sizeof(v));
    v.head.round = 1;
    v.head.phase = HEAD_RUN;
    text_of(KEY_HEAD, &v, "{\"round\":1,\"phase\":\"run\"}");
}

static void refused(enum key_kind kind, const char *text) {
    union value v;
    struct err err = {0};
    memset(&v, 0x55, sizeof(v));
    assert_true(codec_take(kind, text, strlen(text), &v, &err) < 0);
    assert_string_not_equal(err.msg, "");
    assert_int_equal(v.session.seq, 0x5555555555555555);
}

static void test_what_is_no_value_is_refused(void **state) {
    (void)state;
    refused(KEY_SESSION, "");
    refused(KEY_SESSION, "[]");
    refused(KEY_SESSION, "{\"seq\":");
    refused(KEY_SESSION, "{\"seq\":\"1\"}");
    refused(KEY_SESSION, "{\"seq\":1.5}");
    refused(KEY_MEMBER, "{\"slots\":4294967296}");
    refused(KEY_MEMBER, "{\"want\":\"both\"}");
    refused(KEY_MEMBER, "{\"want\":1}");
    refused(KEY_LEAD, "{\"uid\":\"00112233445566778899aabbccddeeff0\"}");
    refused(KEY_LEAD, "{\"uid\":\"00\\u000011\"}");
}

static void test_fields_of_a_later_version_are_ignored(void **state) {
    (void)state;
    union value v;
    const char *text = "{\"seq\":3,\"colour\":{\"red\":[1]}}";
    assert_int_equal(codec_take(KEY_SESSION, text, strlen(text), &v, NULL), 0);
    assert_int_equal(v.session.seq, 3);
}

/* Bytes that are no UTF-8 grow on the way; the head must stay readable all the same. */
static void test_an_error_text_of_wild_bytes_does_not_make_a_value_unreadable(void **state) {
    (void)state;
    union value v, back;
    struct buf b = {0};
    memset(&v, 0, sizeof(v));
    v.head.round = 5;
    memset(v.head.failure.error, 0xff, sizeof(v.head.failure.error) - 1);
    codec_put(&b, KEY_HEAD, &v);
    assert_int_equal(codec_take(KEY_HEAD, buf_str(&b), b.len, &back, NULL), 0);
    assert_int_equal(back.head.round, 5);
    assert_string_not_equal(back.head.failure.error, "");
    buf_fini(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_value_comes_back_whole),
        cmocka_unit_test(test_the_head_comes_back_whole),
        cmocka_unit_test(test_values_are_short_lines_that_people_can_read),
        cmocka_unit_test(test_what_is_no_value_is_refused),
        cmocka_unit_test(test_an_error_text_of_wild_bytes_does_not_make_a_value_unreadable),
        cmocka_unit_test(test_fields_of_a_later_version_are_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
