/* Lifelines over loopback: which end writes a certificate. */
#include "agent/core/kv.h"
#include "agent/store/lifelines.h"
#include "agent/store/server.h"
#include "agent/store/store.h"
#include "base/buf.h"
#include "base/sys/clock.h"
#include "base/sys/tcp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define INC  "0123456789abcdef"
#define LAST "ffffffffffffffffffffffffffffffff"

static struct loop *loop;
static struct kv *kv;
static struct server *server;
static struct store *local;
static struct loop_source *patience;

static void gave_up(void *arg, int64_t now_ns) {
    (void)arg, (void)now_ns;
    fail_msg("no certificate was written");
}

static void on_news(void *arg, const struct store_news *news) {
    (void)arg;
    assert_false(news->ended);
    loop_stop(loop);
}

static const char *uid_of(int i) {
    static char uid[UID_SIZE];
    snprintf(uid, sizeof(uid), "%032x", i);
    return uid;
}

static struct kv_bytes key_of(enum key_kind kind, const char *uid, char text[KEY_SIZE]) {
    struct store_key key = {.kind = kind, .inc = INC};
    char end[KEY_SIZE];
    strcpy(key.uid, uid);
    key_format(&key, "job", text, end);
    return kv_string(text);
}

static void do_txn(const struct kv_op *op, struct arena *a, struct kv_txn_result *ret) {
    assert_int_equal(kv_txn(kv, &(struct kv_txn){.success = op, .n_success = 1}, a, ret, NULL), 0);
}

static bool exists(enum key_kind kind, const char *uid) {
    char text[KEY_SIZE];
    struct arena a = {0};
    struct kv_txn_result r;
    do_txn(&(struct kv_op){.kind = KV_RANGE, .key = key_of(kind, uid, text)}, &a, &r);
    bool there = r.results[0].n_pairs > 0;
    arena_fini(&a);
    return there;
}

/* Returns its create revision. */
static int64_t session(const char *uid) {
    char text[KEY_SIZE];
    struct arena a = {0};
    struct kv_txn_result r;
    do_txn(&(struct kv_op){.kind = KV_PUT, .key = key_of(KEY_SESSION, uid, text)}, &a, &r);
    arena_fini(&a);
    return r.revision;
}

static int connect_to_store(void) {
    struct tcp_endpoint e = {.host = "127.0.0.1", .port = server_port(server)};
    struct tcp_address to;
    int fd = -1;
    assert_int_equal(tcp_resolve(&e, &to, 1, NULL), 1);
    assert_int_equal(tcp_connect(&to, &fd), 0);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    assert_int_equal(poll(&p, 1, 5000), 1);
    assert_int_equal(tcp_connected(fd), 0);
    return fd;
}

static const char *token; /* that lifelines show */

/* from NULL: as it is. */
static int lifeline(const char *uid, int64_t revision, const char *from) {
    char own[TCP_ENDS_MAX], peer[TCP_ENDS_MAX];
    struct lifeline_claim claim = {.inc = INC, .revision = revision};
    struct buf request = {0};
    int fd = connect_to_store();
    strcpy(claim.uid, uid);
    assert_int_equal(tcp_ends(fd, own, peer), 0);
    struct lifeline_ends ends = {from ? from : own, peer};
    lifelines_put_request(&request, "job", &claim, &ends, token);
    assert_int_equal(send(fd, request.data, request.len, 0), request.len);
    buf_fini(&request);
    return fd;
}

/* A good one that ends last: when its certificate is there, any earlier one would be. */
static void await_last(void) {
    int fd = lifeline(LAST, session(LAST), NULL);
    close(fd);
    loop_timer_at(patience, clock_monotonic_ns() + 20000000000);
    while (!exists(KEY_GONE, LAST))
        assert_int_equal(loop_run(loop, NULL), 0);
    assert_false(exists(KEY_SESSION, LAST));
}

static int set_up(void **state) {
    (void)state;
    char from[KEY_SIZE], end[KEY_SIZE];
    struct store_key gone = {.kind = KEY_GONE, .scope = KEYS_ALL, .inc = INC};
    int64_t lease;
    loop = loop_new(NULL);
    kv = kv_new(1, 0);
    assert_int_equal(kv_lease_grant(kv, key_lease(INC), 600, clock_monotonic_ns(), &lease, NULL),
                     0);
    server = server_new(loop, kv, "127.0.0.1", 0, NULL);
    assert_non_null(server);
    local = store_local_new(loop, kv, NULL, NULL);
    patience = loop_timer(loop, gave_up, NULL);
    key_format(&gone, "job", from, end);
    store_watch(local, kv_string(from), kv_string(end), 0, 1000, on_news, NULL);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    store_free(local);
    server_free(server);
    kv_free(kv);
    loop_source_free(patience);
    loop_free(loop);
    return 0;
}

static void test_the_end_of_the_last_holder_certifies_the_session(void **state) {
    (void)state;
    int fd = lifeline(uid_of(1), session(uid_of(1)), NULL), copy = dup(fd);
    close(fd);
    await_last(); /* one holder is left: nothing has ended */
    assert_true(exists(KEY_SESSION, uid_of(1)));
    assert_false(exists(KEY_GONE, uid_of(1)));
    close(copy);
    while (!exists(KEY_GONE, uid_of(1)))
        assert_int_equal(loop_run(loop, NULL), 0);
    assert_false(exists(KEY_SESSION, uid_of(1)));
}

static void test_a_reset_certifies_nobody(void **state) {
    (void)state;
    int fd = lifeline(uid_of(2), session(uid_of(2)), NULL);
    tcp_close_as_broken(&fd);
    await_last();
    assert_int_equal(server_lifelines(server), 0);
    assert_true(exists(KEY_SESSION, uid_of(2)));
    assert_false(exists(KEY_GONE, uid_of(2)));
}

/* An agent that gives it up while a worker holds it. */
static void test_one_that_was_given_up_proves_nothing_when_its_last_holder_ends(void **state) {
    (void)state;
    int fd = lifeline(uid_of(3), session(uid_of(3)), NULL), copy = dup(fd);
    tcp_close_as_broken(&fd);
    close(copy);
    await_last();
    assert_false(exists(KEY_GONE, uid_of(3)));
}

static void test_one_on_which_more_is_said_proves_nothing(void **state) {
    (void)state;
    int fd = lifeline(uid_of(4), session(uid_of(4)), NULL);
    assert_int_equal(send(fd, "x", 1, 0), 1);
    close(fd);
    await_last();
    assert_false(exists(KEY_GONE, uid_of(4)));
}

static void test_one_with_something_in_between_is_refused(void **state) {
    (void)state;
    char text[512] = "";
    int fd = lifeline(uid_of(5), session(uid_of(5)), "192.0.2.7:4711");
    await_last();
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 5000), 1);
    assert_true(recv(fd, text, sizeof(text) - 1, 0) > 0);
    assert_non_null(strstr(text, "400"));
    assert_non_null(strstr(text, "192.0.2.7:4711"));
    close(fd);
    assert_false(exists(KEY_GONE, uid_of(5)));
}

static void test_the_session_must_be_the_one_that_was_named(void **state) {
    (void)state;
    int fd = lifeline(uid_of(6), session(uid_of(6)) + 1, NULL);
    close(fd);
    await_last();
    assert_true(exists(KEY_SESSION, uid_of(6)));
    assert_false(exists(KEY_GONE, uid_of(6)));
}

static void test_one_that_does_not_show_the_token_proves_nothing(void **state) {
    (void)state;
    server_demand(server, "s3cret");
    close(lifeline(uid_of(8), session(uid_of(8)), NULL));
    token = "s3cret";
    await_last();
    token = NULL;
    assert_true(exists(KEY_SESSION, uid_of(8)));
    assert_false(exists(KEY_GONE, uid_of(8)));
}

static void test_a_store_that_goes_certifies_nobody(void **state) {
    (void)state;
    int fd = lifeline(uid_of(7), session(uid_of(7)), NULL);
    await_last();
    server = server_free(server);
    close(fd);
    assert_false(exists(KEY_GONE, uid_of(7)));
}

static void test_nonsense_is_answered(void **state) {
    (void)state;
    static const char *const bodies[] = {"", "[]", "{}", "{\"run_id\":\"job\",\"inc\":\"../..\"}"};
    for (int i = 0; i < 4; i++) {
        char text[512] = "";
        int fd = connect_to_store();
        int n =
            snprintf(text, sizeof(text),
                     "POST " LIFELINE_PATH " HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s",
                     strlen(bodies[i]), bodies[i]);
        assert_int_equal(send(fd, text, (size_t)n, 0), n);
        close(fd);
    }
    await_last();
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_the_end_of_the_last_holder_certifies_the_session),
        TEST(test_a_reset_certifies_nobody),
        TEST(test_one_that_was_given_up_proves_nothing_when_its_last_holder_ends),
        TEST(test_one_on_which_more_is_said_proves_nothing),
        TEST(test_one_with_something_in_between_is_refused),
        TEST(test_the_session_must_be_the_one_that_was_named),
        TEST(test_one_that_does_not_show_the_token_proves_nothing),
        TEST(test_a_store_that_goes_certifies_nobody),
        TEST(test_nonsense_is_answered),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
