/* Answers of HTTP as servers give them, whole, byte by byte and in halves: what is in them, where
 * they end, and what is none. */
#include "base/buf.h"
#include "base/http/response.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

/* body, status, used and keeps are those of a whole answer; why is part of what is said of another.
 * at_end: the connection ends after the text. */
static const struct row {
    const char *text;
    const char *body;
    long status;
    size_t rest; /* bytes that are not of this answer */
    bool keeps, at_end;
    const char *why;
} rows[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "abc", 200, 0, true, false, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 500", "abc", 200, 12, true, false,
     NULL},
    {"HTTP/1.1 200 OK\r\ncontent-length:\t 3 \r\n\r\nabc", "abc", 200, 0, true, false, NULL},
    {"HTTP/1.1 200\nContent-Length: 0\n\n", "", 200, 0, true, false, NULL},
    {"HTTP/1.1 200 \r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na", "a", 200, 0, true, false,
     NULL},
    {"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", "x", 404, 0,
     false, false, NULL},
    {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", "x", 200, 0, false, false, NULL},
    {"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx", "x", 200, 0, true,
     false, NULL},
    {"HTTP/1.1 204 No Content\r\n\r\n", "", 204, 0, true, false, NULL},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", "", 304, 0, true, false, NULL},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n"
     "Content-Length: 1\r\n\r\nx",
     "x", 200, 0, true, false, NULL},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA "
     ";x=y\r\n0123456789\r\n0\r\n\r\n",
     "abc0123456789", 200, 0, true, false, NULL},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1\na\n0\nTrailer: 1\n\nmore", "a", 200,
     4, true, false, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: "
     "chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
     "a", 200, 0, false, false, NULL},
    {"HTTP/1.1 200 OK\r\n\r\nall of it", "all of it", 200, 0, false, true, NULL},
    {"HTTP/1.1 200 OK\r\n\r\n", "", 200, 0, false, true, NULL},
    {"", NULL, 0, 0, false, true, "without an answer"},
    {"HTTP", NULL, 0, 0, false, true, "in the middle of its answer"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", NULL, 0, 0, false, true, "in the middle of"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", NULL, 0, 0, false, true,
     "in the middle of"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", NULL, 0, 0, false, true,
     "in the middle of"},
    {"SSH-2.0-OpenSSH_9.2\r\n", NULL, 0, 0, false, false, "it does not answer in HTTP/1: 'S"},
    {"\x15\x03\x01", NULL, 0, 0, false, false, "it does not answer in HTTP/1"},
    {"HTTP/2 200\r\n\r\n", NULL, 0, 0, false, false, "HTTP/1"},
    {"HTTP/1.1 20\r\n", NULL, 0, 0, false, false, "HTTP/1"},
    {"HTTP/1.1 2000\r\n", NULL, 0, 0, false, false, "HTTP/1"},
    {"HTTP/1.1 099\r\n", NULL, 0, 0, false, false, "HTTP/1"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 3x\r\n\r\n", NULL, 0, 0, false, false,
     "Content-Length: '3x'"},
    {"HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n", NULL, 0, 0, false, false,
     "Content-Length: '-3'"},
    {"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", NULL, 0, 0, false, false, "Content-Length"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", NULL, 0, 0, false, false,
     "Content-Length"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n", NULL, 0, 0, false, false,
     "Content-Length: '4'"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", NULL, 0, 0, false, false,
     "nobody asked for: 'gzip, chunked'"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno\r\n", NULL, 0, 0, false, false,
     "without a size: 'no'"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", NULL, 0, 0, false, false,
     "without a size"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1234567890abcdef\r\n", NULL, 0, 0, false,
     false, "without a size"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", NULL, 0, 0, false, false,
     "longer than its size"},
    {"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", NULL, 0, 0, false, false, "another protocol"},
    {"HTTP/1.1 100 Continue\r\nContent-Length: 1\r\n\r\n", NULL, 0, 0, false, false, "interim"},
};

static void on_header(void *arg, const char *line, size_t n) {
    (void)arg;
    assert_null(memchr(line, '\n', n));
}

static bool on_body(void *arg, const char *p, size_t n) {
    buf_put(arg, p, n);
    return true;
}

static const struct response_reader READER = {on_header, on_body};

/* In pieces of that many bytes. */
static void read_row(const struct row *row, size_t piece) {
    struct response r;
    struct buf body = {0};
    enum response_step step = RESPONSE_MORE;
    size_t n = strlen(row->text), at = 0, used;
    response_begin(&r, &READER, &body);
    while (at < n && step == RESPONSE_MORE) {
        step = response_take(&r, row->text + at, piece < n - at ? piece : n - at, &used);
        at += used;
    }
    if (row->at_end) {
        assert_int_equal(step, RESPONSE_MORE);
        step = response_end(&r);
    }
    if (row->body) {
        assert_int_equal(step, RESPONSE_WHOLE);
        assert_string_equal(buf_str(&body), row->body);
        assert_int_equal(r.status, row->status);
        assert_int_equal(r.keeps, row->keeps);
        assert_int_equal(n - at, row->rest);
    } else {
        assert_int_equal(step, RESPONSE_BROKEN);
        /* What is shown of it is what had come. */
        if (piece >= n && !strstr(r.why, row->why))
            fail_msg("'%s' says: %s", row->text, r.why);
    }
    buf_fini(&body);
    response_fini(&r);
}

static void test_an_answer_is_the_same_in_whatever_pieces_it_comes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (size_t piece = 1; piece <= strlen(rows[i].text) + 1; piece++)
            read_row(&rows[i], piece);
}

/* Endless heads take no memory without end. */
static void test_a_head_without_an_end_is_given_up(void **state) {
    static const char *const fillers[] = {"x", "x: y\r\n"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct response r;
        struct buf body = {0};
        enum response_step step = RESPONSE_MORE;
        size_t used, fed = 0;
        const char *head = "HTTP/1.1 200 OK\r\n";
        response_begin(&r, &READER, &body);
        response_take(&r, head, strlen(head), &used);
        for (; step == RESPONSE_MORE && fed < 1 << 20; fed += strlen(fillers[i]))
            step = response_take(&r, fillers[i], strlen(fillers[i]), &used);
        assert_int_equal(step, RESPONSE_BROKEN);
        assert_string_equal(r.why, "the head of its answer has no end");
        response_fini(&r);
    }
}

static bool take_nothing(void *arg, const char *p, size_t n) {
    (void)arg;
    (void)p;
    (void)n;
    return false;
}

static void test_a_reader_that_has_enough_ends_it(void **state) {
    static const struct response_reader small = {on_header, take_nothing};
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    struct response r;
    size_t used;
    (void)state;
    response_begin(&r, &small, NULL);
    assert_int_equal(response_take(&r, text, sizeof(text) - 1, &used), RESPONSE_BROKEN);
    assert_string_equal(r.why, "its answer is too long");
    response_fini(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_is_the_same_in_whatever_pieces_it_comes),
        cmocka_unit_test(test_a_head_without_an_end_is_given_up),
        cmocka_unit_test(test_a_reader_that_has_enough_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
