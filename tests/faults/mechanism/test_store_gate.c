#include "faults/mechanism/store_gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

enum { CLIENT, STORE, OTHER, HEAD = 54 };

static struct store_gate *gate;
static unsigned char bytes[512];
static char passed[512];

static int begin(void **state) {
    (void)state;
    gate = store_gate_new();
    passed[0] = '\0';
    return 0;
}

static int end(void **state) {
    (void)state;
    gate = store_gate_free(gate);
    return 0;
}

/* A segment of a client's connection to the store. */
static struct gate_verdict see(int from, uint16_t port, uint32_t sequence, const char *text) {
    size_t n = strlen(text);
    memset(bytes, 0, sizeof(bytes));
    memcpy(bytes + HEAD, text, n);
    const struct frame f = {.kind = FRAME_TCP,
                            .destination = bytes,
                            .data = n ? HEAD : 0,
                            .end = HEAD + n,
                            .source_port = port,
                            .destination_port = 29400,
                            .sequence = sequence};
    const struct gate_frame g = {
        .from = from, .to = STORE, .frame = &f, .message = bytes, .len = HEAD + n};
    return store_gate_see(gate, &g);
}

static void on_passed(void *arg, const struct gate_frame *g) {
    (void)arg;
    size_t at = strlen(passed);
    snprintf(passed + at, sizeof(passed) - at, "[%.*s]", (int)(g->len - HEAD),
             (const char *)g->message + HEAD);
}

#define POST(path) "POST " path " HTTP/1.1\r\n\r\n{}"

static void test_requests_are_told_by_what_they_ask_for(void **state) {
    static const struct {
        const char *text;
        int operation;
    } rows[] = {{POST("/v3/kv/put"), STORE_PUT},
                {POST("/v3/kv/range"), STORE_RANGE},
                {POST("/v3/kv/deleterange"), STORE_DELETE},
                {POST("/v3beta/kv/txn"), STORE_TXN},
                {POST("/v3/kv/compaction"), STORE_COMPACT},
                {POST("/v3/lease/grant"), STORE_GRANT},
                {POST("/v3/lease/keepalive"), STORE_KEEP_ALIVE},
                {POST("/v3/lease/revoke"), STORE_REVOKE},
                {POST("/v3/kv/lease/revoke"), STORE_REVOKE},
                {POST("/v3/watch"), STORE_WATCH},
                {"PUT /v2/keys/a?prevExist=false HTTP/1.1\r\n\r\nvalue=1", STORE_PUT},
                {"GET /v2/keys/a HTTP/1.1\r\n\r\n", STORE_RANGE},
                {"GET /v2/keys/a?wait=true HTTP/1.1\r\n\r\n", STORE_WATCH},
                {"DELETE /v2/keys/a HTTP/1.1\r\n\r\n", STORE_DELETE},
                {POST("/v3/auth/authenticate"), STORE_OPERATION_NONE},
                {POST("/v3/rankrun/lifeline"), STORE_OPERATION_NONE},
                {"GET /v3/kv/txn HTTP/1.1\r\n\r\n", STORE_OPERATION_NONE},
                {"{\"key\":\"POST /v3/kv/txn HTTP\"}", STORE_OPERATION_NONE},
                {"POST /v", STORE_OPERATION_NONE},
                {"", STORE_OPERATION_NONE}};
    (void)state;
    store_gate_watch(gate, ~0U, 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct gate_verdict v = see(CLIENT, (uint16_t)(7000 + i), 1, rows[i].text);
        assert_int_equal(v.operation, rows[i].operation);
        assert_false(v.kept);
    }
}

static void test_what_is_sent_again_is_no_other_request(void **state) {
    (void)state;
    store_gate_watch(gate, 1U << STORE_TXN, 0);
    assert_int_equal(see(CLIENT, 7000, 0xfffffff0, POST("/v3/kv/txn")).operation, STORE_TXN);
    assert_int_equal(see(CLIENT, 7000, 0xfffffff0, POST("/v3/kv/txn")).operation, -1);
    assert_int_equal(see(CLIENT, 7000, 4, POST("/v3/kv/txn")).operation, STORE_TXN); /* wrapped */
    assert_int_equal(see(OTHER, 7000, 4, POST("/v3/kv/txn")).operation, STORE_TXN);
    assert_int_equal(see(CLIENT, 7001, 4, POST("/v3/kv/txn")).operation, STORE_TXN);
}

static void test_a_request_waits_with_all_that_comes_behind_it(void **state) {
    (void)state;
    store_gate_watch(gate, 1U << STORE_TXN | 1U << STORE_PUT, 1U << STORE_TXN);
    assert_false(see(CLIENT, 7000, 1, POST("/v3/kv/put")).kept);
    struct gate_verdict v = see(CLIENT, 7000, 60, POST("/v3/kv/txn"));
    assert_true(v.kept && v.id);
    struct gate_verdict body = see(CLIENT, 7000, 99, "more");
    assert_true(body.kept);
    assert_int_equal(body.operation, STORE_OPERATION_NONE);
    assert_false(see(CLIENT, 7001, 1, "other").kept);
    assert_false(see(OTHER, 7000, 1, "other").kept);
    store_gate_pass(gate, v.id + 1, on_passed, NULL);
    assert_string_equal(passed, "");
    store_gate_pass(gate, v.id, on_passed, NULL);
    assert_string_equal(passed, "[" POST("/v3/kv/txn") "][more]");
    store_gate_pass(gate, v.id, on_passed, NULL); /* once */
    assert_string_equal(passed, "[" POST("/v3/kv/txn") "][more]");
    assert_false(see(CLIENT, 7000, 103, "behind").kept);
}

static void test_who_waits_goes_on_waiting_when_nobody_watches_any_more(void **state) {
    (void)state;
    assert_true(store_gate_is_open(gate));
    store_gate_watch(gate, 1U << STORE_TXN, 1U << STORE_TXN);
    uint64_t id = see(CLIENT, 7000, 1, POST("/v3/kv/txn")).id;
    store_gate_watch(gate, 0, 0);
    assert_false(store_gate_is_open(gate));
    assert_true(see(CLIENT, 7000, 1, POST("/v3/kv/txn")).kept); /* sent again */
    assert_false(see(CLIENT, 7001, 1, POST("/v3/kv/txn")).kept);
    store_gate_pass(gate, id, on_passed, NULL);
    assert_true(store_gate_is_open(gate));
}

static void test_all_go_on_when_the_gate_is_opened(void **state) {
    (void)state;
    store_gate_watch(gate, 1U << STORE_TXN, 1U << STORE_TXN);
    see(CLIENT, 7000, 1, POST("/v3/kv/txn"));
    see(OTHER, 7000, 1, POST("/v3/kv/txn"));
    store_gate_open(gate, on_passed, NULL);
    assert_string_equal(passed, "[" POST("/v3/kv/txn") "][" POST("/v3/kv/txn") "]");
    assert_true(store_gate_is_open(gate));
    assert_false(see(CLIENT, 7001, 1, POST("/v3/kv/txn")).kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_requests_are_told_by_what_they_ask_for, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_sent_again_is_no_other_request, begin, end),
        cmocka_unit_test_setup_teardown(test_a_request_waits_with_all_that_comes_behind_it, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_who_waits_goes_on_waiting_when_nobody_watches_any_more,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_all_go_on_when_the_gate_is_opened, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
