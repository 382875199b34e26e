/* The state of a rendezvous, against texts recorded from torchrun 1.13. */
#include "agent/legacy/document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct document d;

static int tear_down(void **state) {
    (void)state;
    document_fini(&d);
    return 0;
}

static void edited(const struct document_edit *e, const char *wanted) {
    struct buf b = {0};
    document_write(&d, e, &b);
    assert_string_equal(buf_str(&b), wanted);
    buf_fini(&b);
}

static void test_the_states_of_torchrun_are_read(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum document_status status;
        int64_t version;
        int n, confirmed, waiting;
    } rows[] = {
        {NULL, DOCUMENT_ABSENT, 0, 0, 0, 0},
        {"{\"status\": \"setup\"}", DOCUMENT_SETUP, 0, 0, 0, 0},
        {"{\"status\": \"joinable\", \"version\": \"1\", \"participants\": []}", DOCUMENT_JOINABLE,
         1, 0, 0, 0},
        {"{\"status\": \"joinable\", \"version\": \"12\", \"participants\": [0, 1]}",
         DOCUMENT_JOINABLE, 12, 2, 0, 0},
        {"{\"status\": \"frozen\", \"version\": \"1\", \"participants\": [0, 1], \"keep_alives\": "
         "[\"/torchelastic/p2p/run_x/rdzv/v_1/rank_1\"]}",
         DOCUMENT_FROZEN, 1, 2, 1, 0},
        {"{\"status\": \"final\", \"version\": \"1\", \"participants\": [0], \"keep_alives\": "
         "[\"/torchelastic/p2p/run_x/rdzv/v_1/rank_0\"], \"num_workers_waiting\": 3}",
         DOCUMENT_FINAL, 1, 1, 1, 3},
        {"{\"status\": \"closed\"}", DOCUMENT_CLOSED, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        document_read(&d, rows[i].text, 5);
        assert_int_equal(d.status, rows[i].status);
        assert_int_equal(d.version, rows[i].version);
        assert_int_equal(d.n, rows[i].n);
        assert_int_equal(d.confirmed, rows[i].confirmed);
        assert_int_equal(d.waiting, rows[i].waiting);
    }
}

static void test_what_torchelastic_never_wrote_is_strange(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "{",
        "{}",
        "{\"status\": \"melting\"}",
        "{\"status\": \"joinable\", \"participants\": []}",
        "{\"status\": \"joinable\", \"version\": 1, \"participants\": []}",
        "{\"status\": \"joinable\", \"version\": \"one\", \"participants\": []}",
        "{\"status\": \"joinable\", \"version\": \"1\", \"participants\": 2}",
        "{\"status\": \"frozen\", \"version\": \"1\", \"participants\": [0]}",
        "{\"status\": \"final\", \"version\": \"1\", \"participants\": [0], \"keep_alives\": [1, "
        "2]}",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        document_read(&d, texts[i], 5);
        assert_int_equal(d.status, DOCUMENT_STRANGE);
    }
}

static void test_who_joins_is_marked_and_found_again(void **state) {
    (void)state;
    document_read(&d, "{\"status\": \"joinable\", \"version\": \"1\", \"participants\": [0]}", 5);
    const struct document_edit join = {
        .status = "frozen", .add_rank = 1, .uid = "me", .begin_keep_alives = true, .waiting = -1};
    const char *after = "{\"status\":\"frozen\",\"version\":\"1\",\"participants\":[0,1],"
                        "\"rankrun\":{\"1\":\"me\"},\"keep_alives\":[]}";
    edited(&join, after);
    document_read(&d, after, 6);
    assert_int_equal(document_rank(&d, "me"), 1);
    assert_int_equal(document_rank(&d, "you"), -1);
    assert_false(document_is_pure(&d)); /* 0 is torchrun's */
}

static void test_a_state_of_rankrun_agents_alone_is_pure(void **state) {
    (void)state;
    document_read(&d,
                  "{\"status\":\"joinable\",\"version\":\"1\",\"participants\":[0,1],"
                  "\"rankrun\":{\"0\":\"a\",\"1\":\"b\"}}",
                  5);
    assert_true(document_is_pure(&d));
}

static void test_what_is_not_known_is_passed_on(void **state) {
    (void)state;
    document_read(&d,
                  "{\"status\": \"final\", \"version\": \"7\", \"participants\": [0], "
                  "\"keep_alives\": [\"/k\"], \"num_workers_waiting\": 0, \"later\": {\"a\": "
                  "[1.5, null, true]}}",
                  5);
    const struct document_edit wait = {.add_rank = -1, .waiting = 1};
    edited(&wait,
           "{\"status\":\"final\",\"version\":\"7\",\"participants\":[0],\"keep_alives\":[\"/"
           "k\"],\"later\":{\"a\":[1.5,null,true]},\"num_workers_waiting\":1}");
    assert_true(document_has_keep_alive(&d, "/k"));
    assert_false(document_has_keep_alive(&d, "/l"));
}

static void test_the_end_is_told(void **state) {
    (void)state;
    document_read(&d, "{\"status\": \"setup\"}", 5);
    assert_null(document_end(&d));
    const struct document_edit end = {
        .status = "closed", .add_rank = -1, .waiting = -1, .end = "rank 1 \"broke\""};
    const char *after = "{\"status\":\"closed\",\"rankrun_end\":\"rank 1 \\\"broke\\\"\"}";
    edited(&end, after);
    document_read(&d, after, 6);
    assert_string_equal(document_end(&d), "rank 1 \"broke\"");
}

static void test_nothing_is_left_of_one_that_is_given_back(void **state) {
    (void)state;
    const char *text = "{\"status\": \"final\", \"version\": \"7\", \"participants\": [0], "
                       "\"keep_alives\": [\"/k\"], \"num_workers_waiting\": 2}";
    document_read(&d, text, 5);
    assert_string_equal(d.text, text);
    assert_true(d.text != text);
    assert_int_equal(d.modified, 5);
    document_fini(&d);
    assert_string_equal(d.text, "");
    assert_int_equal(d.status, DOCUMENT_ABSENT);
    assert_int_equal(d.modified + d.version + d.n + d.waiting + d.confirmed, 0);
    assert_null(d.top);
    document_read(&d, NULL, 5);
    assert_string_equal(d.text, "");
    assert_int_equal(d.modified, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_the_states_of_torchrun_are_read, tear_down),
        cmocka_unit_test_teardown(test_what_torchelastic_never_wrote_is_strange, tear_down),
        cmocka_unit_test_teardown(test_who_joins_is_marked_and_found_again, tear_down),
        cmocka_unit_test_teardown(test_a_state_of_rankrun_agents_alone_is_pure, tear_down),
        cmocka_unit_test_teardown(test_what_is_not_known_is_passed_on, tear_down),
        cmocka_unit_test_teardown(test_the_end_is_told, tear_down),
        cmocka_unit_test_teardown(test_nothing_is_left_of_one_that_is_given_back, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
