#include "faults/mechanism/answers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

enum { STORE, CLIENT, OTHER, HEAD = 54 };

static struct answers_due all;

static int begin(void **state) {
    (void)state;
    memset(&all, 0, sizeof(all));
    return 0;
}

/* What one port of the wire says to another, on the client's connection of that port. */
static bool see(int from, int to, uint16_t port, const char *text, bool any) {
    unsigned char bytes[512] = {0};
    size_t n = strlen(text);
    memcpy(bytes + HEAD, text, n);
    struct frame f = {.kind = FRAME_TCP, .destination = bytes, .data = HEAD, .end = HEAD + n};
    f.source_port = from == STORE ? 29400 : port;
    f.destination_port = from == STORE ? port : 29400;
    return answers_see(&all, from, to, &f, any);
}

#define TXN     "POST /v3/kv/txn HTTP/1.1\r\n\r\n{}"
#define RANGE   "POST /v3/kv/range HTTP/1.1\r\n\r\n{}"
#define WATCH   "POST /v3/watch HTTP/1.1\r\n\r\n{}"
#define APPLIED "HTTP/1.1 200 OK\r\n\r\n{\"header\":{},\"succeeded\":true}"
#define REFUSED "HTTP/1.1 200 OK\r\n\r\n{\"header\":{}}"

static void test_an_answer_says_that_what_was_asked_has_been_applied(void **state) {
    (void)state;
    assert_false(see(CLIENT, STORE, 7000, TXN, false));
    assert_true(see(STORE, CLIENT, 7000, APPLIED, false));
}

static void test_an_answer_without_a_request_is_none(void **state) {
    (void)state;
    assert_false(see(STORE, CLIENT, 7000, APPLIED, false));
    assert_false(see(CLIENT, STORE, 7000, TXN, false));
    assert_true(see(STORE, CLIENT, 7000, APPLIED, false));
    assert_false(see(STORE, CLIENT, 7000, APPLIED, false));
}

static void test_a_transaction_that_was_not_applied_is_let_through(void **state) {
    (void)state;
    see(CLIENT, STORE, 7000, TXN, false);
    assert_false(see(STORE, CLIENT, 7000, REFUSED, false));
    see(CLIENT, STORE, 7000, RANGE, false);
    assert_false(see(STORE, CLIENT, 7000, APPLIED, false));
}

static void test_connections_are_told_apart(void **state) {
    (void)state;
    see(CLIENT, STORE, 7000, TXN, false);
    assert_false(see(STORE, CLIENT, 7001, APPLIED, false));
    assert_false(see(STORE, OTHER, 7000, APPLIED, false));
    assert_true(see(STORE, CLIENT, 7000, APPLIED, false));
}

static void test_what_does_not_fit_one_segment_is_followed(void **state) {
    (void)state;
    see(CLIENT, STORE, 7000, TXN, false);
    assert_false(see(CLIENT, STORE, 7000, "the rest of the request", false));
    assert_false(see(STORE, CLIENT, 7000, "HTTP/1.1 200 OK\r\n\r\n", false));
    assert_true(see(STORE, CLIENT, 7000, "{\"succeeded\":true}", false));
}

static void test_all_is_whatever_was_asked_but_a_watch(void **state) {
    (void)state;
    see(CLIENT, STORE, 7000, RANGE, true);
    assert_true(see(STORE, CLIENT, 7000, REFUSED, true));
    see(CLIENT, STORE, 7001, WATCH, true);
    assert_false(see(STORE, CLIENT, 7001, REFUSED, true));
}

static void test_the_oldest_of_too_many_is_forgotten(void **state) {
    (void)state;
    for (int i = 0; i <= ANSWERS_OPEN_MAX; i++)
        see(CLIENT, STORE, (uint16_t)(1000 + i), TXN, false);
    assert_false(see(STORE, CLIENT, 1000, APPLIED, false));
    assert_true(see(STORE, CLIENT, 1000 + ANSWERS_OPEN_MAX, APPLIED, false));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_an_answer_says_that_what_was_asked_has_been_applied, begin),
        cmocka_unit_test_setup(test_an_answer_without_a_request_is_none, begin),
        cmocka_unit_test_setup(test_a_transaction_that_was_not_applied_is_let_through, begin),
        cmocka_unit_test_setup(test_connections_are_told_apart, begin),
        cmocka_unit_test_setup(test_what_does_not_fit_one_segment_is_followed, begin),
        cmocka_unit_test_setup(test_all_is_whatever_was_asked_but_a_watch, begin),
        cmocka_unit_test_setup(test_the_oldest_of_too_many_is_forgotten, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
