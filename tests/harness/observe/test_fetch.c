/* What a web server answers, and every way in which it does not. */
#include "harness/observe/fetch.h"

#include "agent/sys/libcurl.h"
#include "agent/sys/tcp.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

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
    int times;
    pthread_t thread;
};

static void *serve(void *arg) {
    const struct server *s = arg;
    char request[4096];
    int fd = accept(s->fd, NULL, NULL);
    ssize_t n = read(fd, request, sizeof(request));
    for (int i = 0; n > 0 && i < s->times; i++)
        n = send(fd, s->answer, strlen(s->answer), MSG_NOSIGNAL);
    close(fd);
    return NULL;
}

static void fetch(const char *answer, int times, struct buf *body, int *ret, struct err *err) {
    struct server s = {.fd = -1, .answer = answer, .times = times};
    const char *const names[] = {"other=127.9.9.9", "web=127.0.0.1"};
    char url[100];
    assert_int_equal(tcp_listen("127.0.0.1", 0, 1, &s.fd, &s.port, err), 0);
    assert_int_equal(fcntl(s.fd, F_SETFL, 0), 0); /* its thread may wait */
    assert_int_equal(pthread_create(&s.thread, NULL, serve, &s), 0);
    snprintf(url, sizeof(url), "http://web:%u/health", (unsigned)s.port);
    *ret = fetch_url(url, NULL, names, 2, body, err);
    pthread_join(s.thread, NULL);
    close(s.fd);
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
    assert_int_equal(fetch_url("http://127.0.0.1:1/", NULL, NULL, 0, &body, &err), -EIO);
    assert_non_null(strstr(err.msg, "Connection refused"));
    assert_int_equal(fetch_url("nonsense://127.0.0.1/", NULL, NULL, 0, &body, &err), -EIO);
    buf_fini(&body);
}

static int skip_without_libcurl(void **state) {
    (void)state;
    struct err err = {0};
    if (!libcurl_load(&err))
        skip();
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_the_body_of_a_good_answer_is_taken, skip_without_libcurl),
        cmocka_unit_test_setup(test_every_other_answer_has_its_own_sentence, skip_without_libcurl),
        cmocka_unit_test_setup(test_nobody_there_is_told_as_the_system_tells_it,
                               skip_without_libcurl),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
