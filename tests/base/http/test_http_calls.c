/* Connections that are used again or lost, servers that are silent, and callers that leave. */
#include "tests/base/http/asking.h"

/* ---- connections that are used again ---- */

static void test_a_connection_is_used_again(void **state) {
    (void)state;
    t.server.lines[0].say = SAYS(1, "a");
    for (int i = 0; i < 5; i++) {
        ask(PATIENCE_MS);
        ANSWERED("a");
    }
    assert_int_equal(t.server.n_clients, 1);
    assert_int_equal(t.server.requests, 5);
}

static void test_a_connection_that_its_answer_spoils_is_not(void **state) {
    static const char *const answers[] = {
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na",
        "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", SAYS(1, "a") "HTTP/1.1 200 OK\r\n"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        t.server.lines[0].say = answers[i];
        ask(PATIENCE_MS);
        ANSWERED("a");
    }
    assert_int_equal(t.server.n_clients, 3);
}

static void test_many_at_once_all_end_and_few_are_kept(void **state) {
    (void)state;
    t.server.lines[0].say = SAYS(1, "a");
    for (int i = 0; i < 30; i++)
        post(url_of("127.0.0.1", t.server.port), PATIENCE_MS);
    await(30);
    ANSWERED("a");
    int before = t.server.n_clients;
    for (int i = 0; i < 8; i++)
        post(url_of("127.0.0.1", t.server.port), PATIENCE_MS);
    await(38);
    assert_int_equal(t.server.n_clients, before);
}

/* The server has closed, and the client has not looked since. */
static void test_a_kept_connection_that_was_closed_fails_nobody(void **state) {
    (void)state;
    t.server.lines[0].say = SAYS(1, "a");
    ask(PATIENCE_MS);
    played_leave(&t.server.clients[0], THEN_CLOSE);
    ask(PATIENCE_MS);
    ANSWERED("a");
    played_leave(&t.server.clients[1], THEN_BREAK);
    ask(PATIENCE_MS);
    ANSWERED("a");
    assert_int_equal(t.server.n_clients, 3);
    assert_int_equal(t.server.requests, 3);
}

/* Every one of several: none of them is a second chance lost. */
static void test_kept_connections_that_were_all_closed_fail_nobody(void **state) {
    (void)state;
    t.server.lines[0].say = SAYS(1, "a");
    for (int i = 0; i < 4; i++)
        post(url_of("127.0.0.1", t.server.port), PATIENCE_MS);
    await(4);
    int before = t.server.n_clients;
    for (int i = 0; i < before; i++)
        played_leave(&t.server.clients[i], THEN_CLOSE);
    ask(PATIENCE_MS);
    ANSWERED("a");
    assert_int_equal(t.server.n_clients, before + 1);
}

/* What somebody may have read is not sent twice: it may have been done. */
static void test_a_request_that_was_read_is_sent_once(void **state) {
    (void)state;
    for (int how = THEN_CLOSE; how <= THEN_BREAK; how++) {
        int before = t.server.requests;
        t.server.n_lines = 2;
        t.server.lines[0] = t.server.lines[1] = (struct played_line){SAYS(1, "a"), THEN_STAY};
        ask(PATIENCE_MS);
        t.server.n_lines = 1;
        t.server.lines[0] = (struct played_line){NULL, (enum played_then)how};
        ask(PATIENCE_MS);
        LOST(how == THEN_CLOSE ? "the connection ended without an answer"
                               : "the connection broke before its answer: ");
        if (how == THEN_BREAK)
            assert_non_null(strstr(t.error, "Connection reset"));
        assert_null(strstr(t.error, "https"));
        assert_int_equal(t.server.requests, before + 2);
    }
}

/* ---- deadlines ---- */

static void test_a_server_that_never_answers_is_given_up(void **state) {
    (void)state;
    ask(SHORT_MS);
    LOST("within 30 ms");
    t.server.lines[0].say = SAYS(9, "half");
    ask(SHORT_MS);
    LOST("within 30 ms");
}

static void test_nobody_waits_for_ever_to_connect(void **state) {
    struct crowd k;
    (void)state;
    crowd_begin(&k, "127.0.0.1", 0);
    post(url_of("127.0.0.1", k.port), SHORT_MS);
    await(1);
    LOST("connecting to 127.0.0.1 port");
    send_to(url_of("127.0.0.1", k.port), SHORT_MS, on_data);
    await(2);
    LOST("took longer than 30 ms");
    crowd_end(&k);
}

static void speak_up(void *arg, int64_t now_ns) {
    (void)arg;
    (void)now_ns;
    played_say(&t.server.clients[0], SAYS(4, "late"));
}

static void test_a_stream_may_be_silent_as_long_as_it_likes(void **state) {
    struct loop_source *late = loop_timer(t.loop, speak_up, NULL);
    (void)state;
    stream(SHORT_MS);
    loop_timer_at(late, clock_monotonic_ns() + 3 * SHORT_MS * 1000000LL);
    await(1);
    ANSWERED("");
    assert_string_equal(buf_str(&t.pieces), "late|");
    loop_source_free(late);
}

static void test_where_nobody_listens_the_system_says_why(void **state) {
    uint16_t port;
    int fd;
    (void)state;
    assert_int_equal(tcp_reserve_port(&fd, &port, NULL), 0);
    post(url_of("127.0.0.1", port), PATIENCE_MS);
    assert_int_equal(t.done, 0);
    await(1);
    LOST("cannot connect to 127.0.0.1 port");
    assert_non_null(strstr(t.error, "Connection refused"));
    file_close(&fd);
}

static void test_addresses_may_be_of_ipv6_or_names(void **state) {
    uint16_t port;
    int fd;
    (void)state;
    t.server.lines[0].say = SAYS(1, "a");
    post(url_of("localhost", t.server.port), PATIENCE_MS);
    await(1);
    ANSWERED("a");
    if (tcp_listen("::1", 0, 8, &fd, &port, NULL) < 0)
        return; /* no IPv6 here */
    struct loop_source *other = loop_fd(t.loop, fd, LOOP_READ, on_played_client, &t.server);
    post(url_of("[::1]", port), PATIENCE_MS);
    await(2);
    ANSWERED("a");
    loop_source_free(other);
    file_close(&fd);
}

/* ---- callers that leave ---- */

static void test_a_call_may_be_cancelled_from_inside_its_data(void **state) {
    (void)state;
    t.server.lines[0].say = CHUNKED "1\r\na\r\n1\r\nb\r\n0\r\n\r\n";
    t.cancels = true;
    stream(PATIENCE_MS);
    await(1);
    assert_int_equal(buf_str(&t.pieces)[0], 'a');
    t.cancels = false;
    t.server.lines[0].say = SAYS(1, "a");
    ask(PATIENCE_MS);
    ANSWERED("a");
    assert_int_equal(t.done, 2);
}

static void test_a_cancelled_call_takes_its_connection_along(void **state) {
    (void)state;
    t.server.lines[0].say = SAYS(1, "a");
    ask(PATIENCE_MS);
    t.server.lines[0].say = NULL;
    struct http_call *c = post(url_of("127.0.0.1", t.server.port), PATIENCE_MS);
    while (t.server.requests < 2)
        played_turn(&t.server);
    http_cancel(c);
    while (t.server.clients[0].source)
        played_turn(&t.server);
    t.server.lines[0].say = SAYS(1, "b");
    ask(PATIENCE_MS);
    ANSWERED("b");
    assert_int_equal(t.done, 2);
    assert_int_equal(t.server.n_clients, 2);
}

static void test_calls_may_be_made_from_inside_the_end_of_one(void **state) {
    (void)state;
    t.server.lines[0].say = SAYS(1, "a");
    t.asks_again = true;
    post(url_of("127.0.0.1", t.server.port), PATIENCE_MS);
    await(2);
    ANSWERED("a");
    assert_int_equal(t.server.n_clients, 1);
}

/* Cancelled before it was connected, by http_free, and in every state between. */
static void test_what_is_left_ends_with_it(void **state) {
    struct crowd k;
    (void)state;
    crowd_begin(&k, "127.0.0.1", 0);
    http_cancel(post(url_of("127.0.0.1", t.server.port), PATIENCE_MS));
    http_cancel(post(url_of("localhost", t.server.port), PATIENCE_MS));
    post(url_of("127.0.0.1", k.port), PATIENCE_MS);
    post(url_of("127.0.0.1", t.server.port), PATIENCE_MS);
    while (!t.server.requests)
        played_turn(&t.server);
    post(url_of("localhost", t.server.port), PATIENCE_MS);
    stream(PATIENCE_MS);
    t.http = http_free(t.http);
    assert_int_equal(t.done, 0);
    crowd_end(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OVER_BOTH(test_a_connection_is_used_again),
        OVER_BOTH(test_a_connection_that_its_answer_spoils_is_not),
        OVER_BOTH(test_many_at_once_all_end_and_few_are_kept),
        OVER_BOTH(test_a_kept_connection_that_was_closed_fails_nobody),
        OVER_BOTH(test_kept_connections_that_were_all_closed_fail_nobody),
        OVER_BOTH(test_a_request_that_was_read_is_sent_once),
        OVER_BOTH(test_a_server_that_never_answers_is_given_up),
        OVER_BOTH(test_nobody_waits_for_ever_to_connect),
        OVER_BOTH(test_a_stream_may_be_silent_as_long_as_it_likes),
        OVER_BOTH(test_where_nobody_listens_the_system_says_why),
        OVER_BOTH(test_addresses_may_be_of_ipv6_or_names),
        OVER_BOTH(test_a_call_may_be_cancelled_from_inside_its_data),
        OVER_BOTH(test_a_cancelled_call_takes_its_connection_along),
        OVER_BOTH(test_calls_may_be_made_from_inside_the_end_of_one),
        OVER_BOTH(test_what_is_left_ends_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
