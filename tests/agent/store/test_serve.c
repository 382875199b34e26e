/* What the program `rankrun store` makes of its options, call by call, with each failing once. All that it calls is played by this
 * file. */
#include "agent/core/kv.h"
#include "agent/store/marker.h"
#include "agent/store/serve.h"
#include "agent/store/server.h"
#include "agent/tls/tls.h"
#include "base/sys/descriptors.h"
#include "base/sys/line.h"
#include "base/sys/loop.h"
#include "base/sys/random.h"
#include "base/sys/signals.h"
#include "tests/agent/store/traced.h"

#include <signal.h>

static char loop_, kv_, server_, tls_, sources[2];
static int n_sources;
static bool is_held, marker_trouble, tls_given;
static loop_signal_fn *on_signal;

static struct loop *fake_loop(struct err *err) {
    trace_note("loop");
    return trace_code("loop", err) ? NULL : (struct loop *)(void *)&loop_;
}

static struct loop_source *fake_signal(const struct loop *l, int signo, loop_signal_fn *fn,
                                       const void *arg) {
    assert_ptr_equal(l, &loop_);
    assert_ptr_equal(arg, &loop_);
    trace_note("on %s", signo == SIGTERM ? "TERM" : signo == SIGINT ? "INT" : "?");
    on_signal = fn;
    return (struct loop_source *)(void *)&sources[n_sources++];
}

static struct server *fake_server(const struct loop *l, const struct kv *kv, const char *host,
                                  uint16_t port, struct err *err) {
    assert_true((const void *)l == &loop_ && (const void *)kv == &kv_);
    trace_note("serve %s:%u", host, port);
    return trace_code("serve", err) ? NULL : (struct server *)(void *)&server_;
}

static void fake_limits(struct server_limits *ret, size_t memory_mb, size_t connections) {
    trace_note("limits of %zu MB, %zu connections", memory_mb, connections);
    ret->held_max = 77;
}

static bool fake_marker(struct marker *m, const char *host, uint16_t port, const char *quarantine,
                        const struct kv *kv, struct err *err) {
    assert_ptr_equal(kv, &kv_);
    strcpy(m->path, "place");
    *err = (struct err){0};
    trace_note("mark %s:%u %s", host, port, quarantine);
    if (marker_trouble)
        err_say(err, -13, "no folder");
    return is_held;
}

__attribute__((format(printf, 3, 4))) static void fake_say(const char *level, const char *what,
                                                           const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    trace_note("%s %s: %s", level, what, text);
}

__attribute__((format(printf, 2, 3))) static void fake_put(const struct line *l, const char *fmt,
                                                           ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    trace_note("%s %s round %d%s: %s", l->level, l->what, (int)l->round,
               l->on_stdout ? " on stdout" : "", text);
    for (size_t i = 0; i < l->n_fields; i++)
        trace_note("%s %s %d", l->fields[i].key, l->fields[i].text ? l->fields[i].text : "is",
                   (int)l->fields[i].number);
}

static int fake_run(const struct loop *l, struct err *err) {
    assert_ptr_equal(l, &loop_);
    trace_note("run");
    return trace_code("run", err);
}

static void close_marker(const struct marker *m, const struct kv *kv) {
    assert_ptr_equal(kv, &kv_);
    trace_note("unmark %s", m->path);
}

static void is(const void *p, const void *expected) {
    assert_ptr_equal(p, expected);
}

#define loop_new(err)                  fake_loop(err)
#define loop_signal(l, signo, fn, arg) fake_signal(l, signo, fn, arg)
#define loop_stop(l)                   (is(l, &loop_), trace_note("stop"))
#define loop_run(l, err)               fake_run(l, err)
#define loop_free(l)                   (is(l, &loop_), trace_note("free loop"))
#define loop_source_free(s)            trace_note("free source %d", (int)((char *)(void *)(s)-sources))
#define descriptors_raise_limit()      trace_note("raise limit")
#define signal_ignore_writes()         trace_note("ignore writes")
#define random_u64()                   12345u
#define kv_new(seed, most)                                                                         \
    (trace_note("kv %d %d", (int)(seed), (int)(most)), (struct kv *)(void *)&kv_)
#define kv_free(kv)                        (is(kv, &kv_), trace_note("free kv"))
#define server_new(l, kv, host, port, err) fake_server(l, kv, host, port, err)
#define server_free(s)                     trace_note("free %s", (s) ? "server" : "no server")
#define server_port(s)                     (is(s, &server_), (uint16_t)4001)
#define server_encrypt(s, t, certified)                                                            \
    (is(s, &server_), is(t, &tls_), trace_note("encrypt %d", certified))
#define server_demand(s, token)                                                                    \
    (is(s, &server_), trace_note("demand %s", (token) ? (token) : "none"))
#define server_draw_token(s)                   (is(s, &server_), trace_note("draw"))
#define server_limits_of(ret, mb, most)        fake_limits(ret, mb, most)
#define server_limit(s, l)                     (is(s, &server_), trace_note("limit %zu", (l)->held_max))
#define server_allow(s, names)                 (is(s, &server_), trace_note("allow %s", (names) ? (names) : "none"))
#define server_warn(s)                         (is(s, &server_), trace_note("warn"))
#define server_changed(s)                      (is(s, &server_), trace_note("changed"))
#define marker_open(m, host, port, q, kv, err) fake_marker(m, host, port, q, kv, err)
#define marker_close(m, kv)                    close_marker(m, kv)
#define tls_free(t)                            (is(t, tls_given ? &tls_ : NULL), trace_note("free tls"))
#define line_say(...)                          fake_say(__VA_ARGS__)
#define line_put(...)                          fake_put(__VA_ARGS__)
#include "agent/store/serve.c"

static struct err err;

static int serve(const struct serve_config *c, const char *failing) {
    trace_begin(failing, 1);
    n_sources = 0;
    err = (struct err){0};
    tls_given = c->tls;
    return serve_run(c, &err);
}

#define BEGUN "loop\nraise limit\nignore writes\non TERM\non INT\nkv 12345 0\nserve here:9\n"
#define LISTENS                                                                                    \
    "info listening round 0 on stdout: store: listening on here:4001\nhost here 0\nport is 4001\n"
#define ENDED "free kv\nfree source 0\nfree source 1\nfree loop\n"
#define PLAIN                                                                                      \
    "demand none\nlimits of 5 MB, 6 connections\nlimit 77\nallow none\nwarn\n"                     \
    "mark here:4001 auto\nchanged\n"

static const struct serve_config plain = {
    .host = "here", .port = 9, .quarantine = "auto", .memory_mb = 5, .connections_max = 6};

static void test_what_was_asked_for_is_served(void **state) {
    (void)state;
    struct serve_config all = plain;
    assert_int_equal(serve(&plain, ""), 0);
    trace_is(BEGUN PLAIN LISTENS "run\nfree server\nunmark place\n" ENDED);
    all.token = "t";
    all.draw_token = true;
    all.tls = (struct tls *)(void *)&tls_;
    all.clients_certified = true;
    all.names = "a,b";
    all.quarantine = "always";
    assert_int_equal(serve(&all, ""), 0);
    trace_is(BEGUN "encrypt 1\ndemand t\ndraw\nlimits of 5 MB, 6 connections\nlimit 77\n"
                   "allow a,b\nwarn\nmark here:4001 always\nchanged\n" LISTENS
                   "run\nfree server\nunmark place\n" ENDED);
    all.clients_certified = all.draw_token = false;
    assert_int_equal(serve(&all, ""), 0);
    trace_is(BEGUN "encrypt 0\ndemand t\nlimits of 5 MB, 6 connections\nlimit 77\n"
                   "allow a,b\nwarn\nmark here:4001 always\nchanged\n" LISTENS
                   "run\nfree server\nunmark place\n" ENDED);
    assert_string_equal(err.msg, "");
}

#define HELD                                                                                       \
    "warning store: store: first rounds are held back for workers that a store here may have "     \
    "forgotten (--quarantine=auto)\n"
#define TROUBLE "warning store: store: no folder\n"

static void test_what_its_marker_shows_is_told(void **state) {
    (void)state;
    static const char *const told[2][2] = {{"", HELD}, {TROUBLE, TROUBLE HELD}};
    for (int i = 0; i < 4; i++) {
        BUF_FINI struct buf expected = {0};
        marker_trouble = i / 2;
        is_held = i % 2;
        assert_int_equal(serve(&plain, ""), 0);
        buf_printf(&expected, "%s%s%s", BEGUN PLAIN, told[i / 2][i % 2],
                   LISTENS "run\nfree server\nunmark place\n" ENDED);
        trace_is(buf_str(&expected));
    }
    marker_trouble = is_held = false;
}

static void test_where_a_call_fails_all_is_given_back(void **state) {
    (void)state;
    for (int tls = 0; tls < 2; tls++) {
        struct serve_config c = plain;
        BUF_FINI struct buf expected = {0};
        c.tls = tls ? (struct tls *)(void *)&tls_ : NULL;
        assert_int_equal(serve(&c, "loop"), -5);
        trace_is("loop\nfree tls\n");
        assert_string_equal(err.msg, "loop failed");
        assert_int_equal(serve(&c, "serve"), -5);
        trace_is(BEGUN "free tls\nfree no server\nunmark \n" ENDED);
        assert_string_equal(err.msg, "serve failed");
        assert_int_equal(serve(&c, "run"), -5);
        buf_printf(&expected, "%s%s%s", BEGUN, tls ? "encrypt 0\n" : "",
                   PLAIN LISTENS "run\nfree server\nunmark place\n" ENDED);
        trace_is(buf_str(&expected));
        assert_string_equal(err.msg, "run failed");
    }
}

static void test_a_signal_ends_it(void **state) {
    (void)state;
    serve(&plain, "");
    buf_clear(&trace);
    on_signal(&loop_, SIGTERM);
    trace_is("stop\n");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_asked_for_is_served),
        cmocka_unit_test(test_what_its_marker_shows_is_told),
        cmocka_unit_test(test_where_a_call_fails_all_is_given_back),
        cmocka_unit_test(test_a_signal_ends_it),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
