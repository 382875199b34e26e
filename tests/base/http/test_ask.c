/* What a web server answers, and every way in which it does not. */
#include "base/http/http.h"

#include "base/sys/tcp.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Answers one request with these bytes, so many times, and hangs up. */
struct server {
    int fd;
    uint16_t port;
    const char *answer;
    int times; /* -1: it says nothing, and waits until the other side has gone */
    char request[4096];
    pthread_t thread;
};

static void *serve(void *arg) {
    struct server *s = arg;
    char rest[64];
    int fd = accept(s->fd, NULL, NULL);
    ssize_t n = read(fd, s->request, sizeof(s->request) - 1);
    for (int i = 0; n > 0 && i < s->times; i++)
        n = send(fd, s->answer, strlen(s->answer), MSG_NOSIGNAL);
    while (s->times < 0 && read(fd, rest, sizeof(rest)) > 0)
        ;
    close(fd);
    return NULL;
}

static void serve_begin(struct server *s) {
    assert_int_equal(tcp_listen("127.0.0.1", 0, 1, &s->fd, &s->port, NULL), 0);
    assert_int_equal(fcntl(s->fd, F_SETFL, 0), 0); /* its thread may wait */
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void serve_end(struct server *s) {
    pthread_join(s->thread, NULL);
    close(s->fd);
}

static int ask(const char *url, const char *const *names, size_t names_n, struct buf *body,
               struct err *err) {
    struct http_question q = {.way = {.names = names, .names_n = names_n},
                              .request = {.method = "GET", .url = url, .timeout_ms = 20000},
                              .bytes_max = 16 << 20};
    return http_ask(&q, body, err);
}

static void fetch(const char *answer, int times, struct buf *body, int *ret, struct err *err) {
    struct server s = {.fd = -1, .answer = answer, .times = times};
    const char *const names[] = {"other=127.9.9.9", "web=127.0.0.1"};
    char url[100];
    serve_begin(&s);
    snprintf(url, sizeof(url), "http://web:%u/health", (unsigned)s.port);
    *ret = ask(url, names, 2, body, err);
    serve_end(&s);
}

static void test_the_body_of_a_good_answer_is_taken(void **state) {
    (void)state;
    struct buf body = {0};
    struct err err = {0};
    int r;
    fetch("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nfine 7\n", 1, &body, &r, &err);
    assert_int_equal(r, 0);
    assert_string_equal(buf_str(&body), "fine 7\n");
    buf_clear(&body);
    fetch("HTTP/1.1 204 No Content\r\n\r\n", 1, &body, &r, &err);
    assert_int_equal(r, 0);
    assert_int_equal(body.len, 0);
    assert_null(dlopen("libcurl.so.4", RTLD_NOW | RTLD_NOLOAD)); /* nothing needed it */
    buf_fini(&body);
}

static void test_every_other_answer_has_its_own_sentence(void **state) {
    (void)state;
    char block[4096 + 1];
    memset(block, 'x', sizeof(block) - 1);
    block[sizeof(block) - 1] = '\0';
    memcpy(block, "HTTP/1.0 200 OK\r\n\r\n", 19);
    const struct {
        const char *answer, *message;
        int times, code;
    } rows[] = {
        {"HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\nno", "HTTP status 500", 1, -EPROTO},
        {"HTTP/1.1 302 Go\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", "status 302", 1, -EPROTO},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "its answer broke off: ", 1, -EIO},
        {"", "no answer: ", 0, -EIO},
        {block, "more than 16 MB", 5000, -EMSGSIZE},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct buf body = {0};
        struct err err = {0};
        int r;
        fetch(rows[i].answer, rows[i].times, &body, &r, &err);
        if (r != rows[i].code || !strstr(err.msg, rows[i].message))
            fail_msg("%.20s: %d, \"%s\"", rows[i].answer, r, err.msg);
        buf_fini(&body);
    }
}

static void test_nobody_there_is_told_as_the_system_tells_it(void **state) {
    (void)state;
    struct buf body = {0};
    struct err err = {0};
    assert_int_equal(ask("http://127.0.0.1:1/", NULL, 0, &body, &err), -EIO);
    assert_non_null(strstr(err.msg, "Connection refused"));
    assert_int_equal(ask("nonsense://127.0.0.1/", NULL, 0, &body, &err), -EIO);
    buf_fini(&body);
}

static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

static void test_what_is_asked_says_all_of_the_question(void **state) {
    (void)state;
    struct server s = {.answer = ok, .times = 1};
    struct buf json = {0}, body = {0};
    struct err err = {0};
    char url[100];
    serve_begin(&s);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u?a=b#c", (unsigned)s.port);
    buf_puts(&json, "{}");
    struct http_question q = {.way = {.token = "t0ken"},
                              .request = {.method = "POST",
                                          .url = url,
                                          .agent = "test/1",
                                          .body = &json,
                                          .type = HTTP_JSON,
                                          .timeout_ms = 20000},
                              .bytes_max = 1};
    assert_int_equal(http_ask(&q, &body, &err), 0);
    serve_end(&s);
    assert_memory_equal(s.request, "POST /?a=b HTTP/1.1\r\n", 21);
    assert_non_null(strstr(s.request, "\r\nAuthorization: Bearer t0ken\r\n"));
    assert_non_null(strstr(s.request, "\r\nUser-Agent: test/1\r\n"));
    assert_non_null(strstr(s.request, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(s.request, "\r\n\r\n{}"));
    buf_fini(&json);
    buf_fini(&body);
}

static void test_a_user_in_the_url_is_shown_as_basic(void **state) {
    (void)state;
    struct server s = {.answer = ok, .times = 1};
    const char *const names[] = {"web=127.0.0.1"};
    struct buf body = {0};
    struct err err = {0};
    char url[100], host[64];
    serve_begin(&s);
    snprintf(url, sizeof(url), "http://user:p%%40ss@web:%u/", (unsigned)s.port);
    snprintf(host, sizeof(host), "\r\nHost: web:%u\r\n", (unsigned)s.port);
    assert_int_equal(ask(url, names, 1, &body, &err), 0);
    serve_end(&s);
    assert_non_null(strstr(s.request, host));
    assert_non_null(strstr(s.request, "\r\nAuthorization: Basic dXNlcjpwQHNz\r\n"));
    buf_fini(&body);
}

static void test_a_server_that_is_silent_is_given_up(void **state) {
    (void)state;
    struct server s = {.times = -1};
    struct buf body = {0};
    struct err err = {0};
    char url[100];
    serve_begin(&s);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", (unsigned)s.port);
    struct http_question q = {.request = {.method = "GET", .url = url, .timeout_ms = 900},
                              .silence_ms = 100};
    assert_int_equal(http_ask(&q, &body, &err), -EAGAIN);
    assert_string_equal(err.msg, "connected, but no whole answer within 0 s");
    serve_end(&s);
    buf_fini(&body);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_body_of_a_good_answer_is_taken),
        cmocka_unit_test(test_every_other_answer_has_its_own_sentence),
        cmocka_unit_test(test_nobody_there_is_told_as_the_system_tells_it),
        cmocka_unit_test(test_what_is_asked_says_all_of_the_question),
        cmocka_unit_test(test_a_user_in_the_url_is_shown_as_basic),
        cmocka_unit_test(test_a_server_that_is_silent_is_given_up),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
