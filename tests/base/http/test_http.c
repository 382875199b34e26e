/* Requests and answers: what is sent, and what comes of answers of every kind. */
#include "tests/base/http/asking.h"

/* ---- requests ---- */

static void test_a_post_says_where_what_and_who(void **state) {
    char host[64];
    (void)state;
    snprintf(host, sizeof(host), "\r\nHost: 127.0.0.1:%u\r\n", t.server.port);
    t.server.lines[0].say = SAYS(3, "abc");
    http_show_token(t.http, "x");
    ask(PATIENCE_MS);
    ANSWERED("abc");
    assert_memory_equal(t.server.last, "POST /v3/kv/txn?a=b HTTP/1.1\r\n", 30);
    assert_non_null(strstr(t.server.last, host));
    assert_non_null(strstr(t.server.last, "\r\nAuthorization: Bearer x\r\n"));
    assert_non_null(strstr(t.server.last, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(t.server.last, "\r\nContent-Length: 7\r\n"));
    assert_non_null(strstr(t.server.last, "\r\n\r\n{\"a\":1}"));
    assert_null(strstr(t.server.last, "Expect:"));
    http_authorize(t.http, "");
    ask(PATIENCE_MS);
    assert_null(strstr(t.server.last, "Authorization"));
}

static void test_a_form_is_put_and_a_header_is_read(void **state) {
    struct http_request r = {.method = "PUT",
                             .url = url_of("127.0.0.1", t.server.port),
                             .body = &t.body,
                             .type = "application/x-www-form-urlencoded",
                             .header = "X-Etcd-Index:",
                             .timeout_ms = PATIENCE_MS};
    (void)state;
    http_show_token(t.http, "x");
    t.server.lines[0].say = "HTTP/1.1 412 Failed\r\nx-etcd-index: 42\r\nContent-Length: 0\r\n\r\n";
    http_send(t.http, &r, on_done, &t);
    await(1);
    assert_int_equal(t.status, 412);
    assert_string_equal(t.header, "42");
    assert_memory_equal(t.server.last, "PUT /v3", 7);
    assert_non_null(strstr(t.server.last, "Content-Type: application/x-www-form-urlencoded\r\n"));
    assert_non_null(strstr(t.server.last, "\r\nAuthorization: Bearer x\r\n"));
    r = (struct http_request){.method = "GET", .url = r.url, .timeout_ms = PATIENCE_MS};
    http_send(t.http, &r, on_done, &t);
    await(2);
    assert_string_equal(t.header, "");
    assert_memory_equal(t.server.last, "GET /v3", 7);
    assert_null(strstr(t.server.last, "Content-"));
    assert_int_equal(t.server.n_clients, 1);
}

/* ---- answers ---- */

static void test_chunks_come_as_they_are_sent(void **state) {
    (void)state;
    t.server.lines[0].say = CHUNKED "3\r\nabc\r\n";
    stream(PATIENCE_MS);
    while (!t.pieces.len)
        played_turn(&t.server);
    played_say(&t.server.clients[0], "6\r\ndef");
    while (t.pieces.len < 8)
        played_turn(&t.server);
    played_say(&t.server.clients[0], "ghi\r\n0\r\n\r\n");
    await(1);
    ANSWERED("");
    assert_string_equal(buf_str(&t.pieces), "abc|def|ghi|");
    t.server.lines[0].say = SAYS(1, "a");
    ask(PATIENCE_MS);
    ANSWERED("a");
    assert_int_equal(t.server.n_clients, 1);
}

static void test_an_answer_may_end_with_its_connection(void **state) {
    (void)state;
    t.server.lines[0] = (struct played_line){"HTTP/1.0 200 OK\r\n\r\nall of it", THEN_CLOSE};
    ask(PATIENCE_MS);
    ANSWERED("all of it");
    stream(PATIENCE_MS);
    await(2);
    ANSWERED("");
    assert_string_equal(buf_str(&t.pieces), "all of it|");
}

static void test_interim_answers_are_passed_over(void **state) {
    (void)state;
    t.server.lines[0].say = "HTTP/1.1 100 Continue\r\n\r\n" SAYS(1, "a");
    ask(PATIENCE_MS);
    ANSWERED("a");
}

static void test_a_redirect_is_an_answer(void **state) {
    (void)state;
    t.server.lines[0].say =
        "HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
    ask(PATIENCE_MS);
    assert_int_equal(t.status, 307);
}

static void test_half_an_answer_is_none(void **state) {
    static const char *const answers[] = {SAYS(9, "half"), CHUNKED "9\r\nhalf", "HTTP/1.1 200"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        t.server.lines[0] = (struct played_line){answers[i], THEN_CLOSE};
        ask(PATIENCE_MS);
        LOST("the connection ended in the middle of its answer");
    }
}

static void test_what_does_not_speak_http_is_told(void **state) {
    (void)state;
    t.server.lines[0] = (struct played_line){"SSH-2.0-OpenSSH_9.2\r\n", THEN_STAY};
    ask(PATIENCE_MS);
    LOST("it does not answer in HTTP/1: 'SSH-2.0-OpenSSH_9.2'");
    t.server.lines[0] = (struct played_line){"\x15\x03\x01", THEN_CLOSE};
    ask(PATIENCE_MS);
    LOST("does it want TLS?");
}

static void test_who_closes_without_a_word_may_want_tls(void **state) {
    (void)state;
    t.server.lines[0] = (struct played_line){NULL, THEN_CLOSE};
    ask(PATIENCE_MS);
    LOST("");
    assert_non_null(strstr(t.error, "does it want TLS?"));
}

/* The server writes as long as anybody reads. */
static void flood(void *arg, int fd, int what) {
    static char piece[1 << 18];
    (void)arg;
    (void)what;
    memset(piece, 'x', sizeof(piece));
    (void)!send(fd, piece, sizeof(piece), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void test_an_answer_without_end_is_given_up(void **state) {
    (void)state;
    t.server.lines[0].say = "HTTP/1.1 200 OK\r\n\r\n";
    post(url_of("127.0.0.1", t.server.port), PATIENCE_MS);
    while (!t.server.requests)
        played_turn(&t.server);
    loop_source_free(t.server.clients[0].source);
    t.server.clients[0].source = loop_fd(t.loop, t.server.clients[0].fd, LOOP_WRITE, flood, NULL);
    await(1);
    LOST("its answer is too long");
    t.server.clients[0].source = loop_source_free(t.server.clients[0].source);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OVER_BOTH(test_a_post_says_where_what_and_who),
        OVER_BOTH(test_a_form_is_put_and_a_header_is_read),
        OVER_BOTH(test_chunks_come_as_they_are_sent),
        OVER_BOTH(test_an_answer_may_end_with_its_connection),
        OVER_BOTH(test_interim_answers_are_passed_over),
        OVER_BOTH(test_a_redirect_is_an_answer),
        OVER_BOTH(test_half_an_answer_is_none),
        OVER_BOTH(test_what_does_not_speak_http_is_told),
        OVER_BOTH(test_who_closes_without_a_word_may_want_tls),
        OVER_BOTH(test_an_answer_without_end_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
