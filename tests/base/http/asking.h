/* asking: a client of the server that is played, over connections of our own
 * and over libcurl's, so that https and http do not differ. */
#pragma once

#include "base/http/http.h"
#include "base/http/state.h"
#include "tests/base/http/played.h"

enum { PATIENCE_MS = 20000, SHORT_MS = 30 };

#define SAYS(length, body) "HTTP/1.1 200 OK\r\nContent-Length: " #length "\r\n\r\n" body
#define CHUNKED            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

static struct test {
    struct loop *loop;
    struct played server;
    struct http *http;
    struct loop_source *patience;
    struct buf body; /* that every post carries */

    int done, wanted; /* how many calls have ended, and are awaited */
    long status;
    char answer[256], error[512], header[64];
    struct buf pieces; /* of a stream, each followed by a bar */
    struct http_call *call;
    bool cancels, asks_again;
} t;

/* ---- the client ---- */

static inline void give_up(void *arg, int64_t now_ns) {
    (void)arg;
    (void)now_ns;
    fail_msg("nothing has come within %d ms", PATIENCE_MS);
}

static inline void await(int wanted) {
    t.wanted = wanted;
    loop_timer_at(t.patience, clock_monotonic_ns() + PATIENCE_MS * 1000000LL);
    while (t.done < t.wanted)
        assert_int_equal(loop_run(t.loop, NULL), 0);
    loop_timer_off(t.patience);
}

static inline const char *url_of(const char *host, unsigned port) {
    static char url[128];
    snprintf(url, sizeof(url), "http://%s:%u/v3/kv/txn?a=b", host, port);
    return url;
}

static inline void on_done(void *arg, long status, const struct buf *body, const char *error);

/* With on_data it is a stream. */
static inline struct http_call *send_to(const char *url, int64_t timeout_ms,
                                        http_data_fn *on_data) {
    struct http_request r = {.method = "POST",
                             .url = url,
                             .body = &t.body,
                             .type = HTTP_JSON,
                             .on_data = on_data,
                             .timeout_ms = timeout_ms};
    return http_send(t.http, &r, on_done, &t);
}

static inline struct http_call *post(const char *url, int64_t timeout_ms) {
    return send_to(url, timeout_ms, NULL);
}

static inline void on_done(void *arg, long status, const struct buf *body, const char *error) {
    assert_ptr_equal(arg, &t);
    t.done++;
    t.status = status;
    snprintf(t.answer, sizeof(t.answer), "%.200s", buf_str(body));
    snprintf(t.error, sizeof(t.error), "%s", error);
    snprintf(t.header, sizeof(t.header), "%s", http_header(t.http));
    if (t.asks_again) {
        t.asks_again = false;
        post(url_of("127.0.0.1", t.server.port), PATIENCE_MS);
    }
    if (t.done >= t.wanted)
        loop_stop(t.loop);
}

static inline void on_data(void *arg, const char *p, size_t n) {
    assert_ptr_equal(arg, &t);
    buf_put(&t.pieces, p, n);
    buf_putc(&t.pieces, '|');
    if (t.cancels) {
        http_cancel(t.call);
        t.done++;
        loop_stop(t.loop);
    }
}

/* Asks the played server, and waits for the end. */
static inline void ask(int64_t timeout_ms) {
    post(url_of("127.0.0.1", t.server.port), timeout_ms);
    await(t.done + 1);
}

static inline void stream(int64_t timeout_ms) {
    t.call = send_to(url_of("127.0.0.1", t.server.port), timeout_ms, on_data);
}

#define ANSWERED(text)                                                                             \
    do {                                                                                           \
        assert_string_equal(t.error, "");                                                          \
        assert_int_equal(t.status, 200);                                                           \
        assert_string_equal(t.answer, text);                                                       \
    } while (0)

#define LOST(words)                                                                                \
    do {                                                                                           \
        assert_int_equal(t.status, 0);                                                             \
        assert_string_equal(t.answer, "");                                                         \
        assert_string_not_equal(t.error, "");                                                      \
        if (!strstr(t.error, words))                                                               \
            fail_msg("\"%s\" is not in \"%s\"", words, t.error);                                   \
    } while (0)

static inline void begin(bool libcurl) {
    const struct http_way way = {.advice = {[HTTP_MAY_WANT_TLS] = "; does it want TLS?"}};
    t = (struct test){.loop = loop_new(NULL)};
    t.patience = loop_timer(t.loop, give_up, NULL);
    t.http = http_new_by(t.loop, &way, libcurl, NULL);
    assert_non_null(t.http);
    buf_puts(&t.body, "{\"a\":1}");
    played_begin(&t.server, t.loop);
}

static inline int begin_plain(void **state) {
    (void)state;
    begin(false);
    return 0;
}

static inline int begin_curl(void **state) {
    (void)state;
    begin(true);
    return 0;
}

static inline int end(void **state) {
    (void)state;
    http_free(t.http);
    played_end(&t.server);
    loop_source_free(t.patience);
    loop_free(t.loop);
    buf_fini(&t.body);
    buf_fini(&t.pieces);
    return 0;
}

#define OVER_BOTH(f)                                                                               \
    {#f " (plain)", f, begin_plain, end, NULL}, {                                                  \
#f " (libcurl)", f, begin_curl, end, NULL                                                  \
    }
