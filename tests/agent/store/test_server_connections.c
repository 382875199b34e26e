/* How connections come in, and what is told of those that are none of HTTP: each first byte, each reason once. Crowd, ledger, TLS and
 * the line are this file's; buffers are libevent's. */
#include "agent/store/server_state.h"

#include "agent/store/answer.h"
#include "agent/store/limits/crowd.h"
#include "agent/store/limits/ledger.h"
#include "base/str.h"
#include "base/sys/line.h"
#include "base/sys/loop.h"
#include "base/sys/tcp.h"
#include "tests/agent/store/traced.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <stdlib.h>

static char crowd_, ledger_, tls_, listeners[3];
static evconnlistener_errorcb failed_fn[3];
static struct bufferevent *by_tls;

static void is(const void *p, const void *expected) {
    assert_ptr_equal(p, expected);
}

__attribute__((format(printf, 3, 4))) static void fake_say(const char *level, const char *what,
                                                           const char *fmt, ...) {
    va_list ap;
    BUF_FINI struct buf text = {0};
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    trace_note("%s %s: %s", level, what, buf_str(&text));
}

static int fake_ends(int fd, char *own, char *peer) {
    assert_int_equal(fd, -1); /* of a buffer without a socket */
    snprintf(own, TCP_ENDS_MAX, "10.0.0.2:29400");
    snprintf(peer, TCP_ENDS_MAX, "10.0.0.1:40000");
    return 0;
}

static int number_of_listener(const void *l) {
    return (int)((const char *)l - listeners);
}

#define line_say(...)           fake_say(__VA_ARGS__)
#define tcp_ends(fd, own, peer) fake_ends(fd, own, peer)
#define tls_accept(t, base, w)                                                                     \
    (is(t, &tls_), is((w)->arg, &server), trace_note("tls"),                                       \
     by_tls = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE))
#define crowd_enter(c, b)                  (is(c, &crowd_), is(b, b), trace_note("enter"))
#define crowd_wait(c)                      (is(c, &crowd_), trace_note("wait"))
#define crowd_listen(c, l)                 (is(c, &crowd_), trace_note("listen %d", number_of_listener(l)))
#define ledger_open(l, b)                  (is(l, &ledger_), (void)(b), trace_note("open"))
#define ledger_begin(l, b, n)              (is(l, &ledger_), (void)(b), trace_note("begin %d", (int)(n)))
#define ledger_close(l, b)                 (is(l, &ledger_), is(b, &tls_), trace_note("close"))
#define ledger_whole(l, b)                 (is(l, &ledger_), is(b, &tls_), trace_note("whole"))
#define evconnlistener_set_error_cb(l, fn) (failed_fn[number_of_listener(l)] = (fn))
static struct server server;
#include "agent/store/server_connections.c"

static struct loop *loop;

static int begin(void **state) {
    (void)state;
    trace_begin("", 0);
    loop = loop_new(NULL);
    server = (struct server){.port = 29400,
                             .crowd = (struct crowd *)(void *)&crowd_,
                             .ledger = (struct ledger *)(void *)&ledger_};
    return 0;
}

static int finish(void **state) {
    (void)state;
    buf_fini(&server.tls_wanted);
    loop_free(loop);
    return 0;
}

/* ---- what comes first ---- */

#define TLS_LINE                                                                                   \
    "warning store: a client that speaks TLS knocked at port 29400 of the store, which speaks "    \
    "none without a certificate: --rdzv-conf store_cert=FILE,store_key=FILE of the agent that "    \
    "serves it, or rankrun store --cert FILE --key FILE\n"
#define OTHER_LINE                                                                                 \
    "warning store: a client that speaks no HTTP knocked at port 29400 of the store, most likely " \
    "torchrun with --rdzv-backend=c10d: it cannot join rankrun agents\n"

static void test_each_first_byte_is_told_of_once(void **state) {
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        unsigned char bytes[] = {(unsigned char)byte, 0, 0x16};
        server.metrics.received = 0;
        server.stranger_told = false;
        for (int again = 0; again < 2; again++) {
            struct bufferevent *b = server_accept(loop_base(loop), &server);
            struct evbuffer *in = bufferevent_get_input(b);
            buf_clear(&trace);
            evbuffer_unfreeze(in, 0);        /* as its socket does it */
            size_t n = 1 + (size_t)byte % 3; /* and what comes with it */
            evbuffer_add(in, bytes, n);
            trace_is(again || byte >= ' ' ? "" : byte == 0x16 ? TLS_LINE : OTHER_LINE);
            buf_clear(&trace);
            evbuffer_add(in, bytes + 1, 2); /* what follows is no first byte */
            evbuffer_drain(in, n + 2);
            server.stranger_told = false;
            evbuffer_add(in, bytes + 1, 2); /* not even where the first was taken */
            trace_is("");
            assert_int_equal(server.metrics.received, (n + 4) * (size_t)(again + 1));
            server.stranger_told = true;
            bufferevent_free(b);
        }
    }
}

static void test_what_is_sent_is_counted_when_it_is_taken(void **state) {
    (void)state;
    struct bufferevent *b = server_accept(loop_base(loop), &server);
    struct evbuffer *out = bufferevent_get_output(b);
    evbuffer_unfreeze(out, 1);
    evbuffer_add(out, "12345", 5);
    assert_int_equal(server.metrics.sent, 0);
    evbuffer_drain(out, 2);
    assert_int_equal(server.metrics.sent, 2);
    evbuffer_drain(out, 3);
    assert_int_equal(server.metrics.sent, 5);
    assert_int_equal(server.metrics.received, 0);
    bufferevent_free(b);
}

/* ---- who comes in ---- */

static void test_each_is_entered_where_it_is_counted(void **state) {
    (void)state;
    struct bufferevent *b = server_accept(loop_base(loop), &server);
    trace_is("enter\nopen\n");
    assert_int_equal(server.metrics.accepted, 1);
    bufferevent_free(b);
    buf_clear(&trace);
    server_encrypt(&server, (struct tls *)(void *)&tls_, false);
    b = server_accept(loop_base(loop), &server);
    assert_ptr_equal(b, by_tls);
    trace_is("tls\nenter\nopen\nbegin 1\n");
    assert_int_equal(server.metrics.accepted, 2);
    bufferevent_free(b);
}

static void test_the_end_of_a_handshake_and_of_a_connection_are_passed_on(void **state) {
    (void)state;
    struct bufferevent *b = (struct bufferevent *)(void *)&tls_;
    server_encrypt(&server, (struct tls *)(void *)&tls_, true);
    assert_true(server.tls_admits);
    server.tls_watch.done(server.tls_watch.arg, b);
    server.tls_watch.gone(server.tls_watch.arg, b);
    server_gone(&server, b);
    trace_is("whole\nclose\nclose\n");
}

static void test_each_reason_of_a_handshake_is_told_once(void **state) {
    (void)state;
    static const char *const reasons[SERVER_REASONS_MAX + 1] = {"r0", "r1", "r2", "r3", "r4",
                                                                "r5", "r6", "r7", "r8"};
    struct bufferevent *b = bufferevent_socket_new(loop_base(loop), -1, 0);
    server_encrypt(&server, (struct tls *)(void *)&tls_, false);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i <= SERVER_REASONS_MAX; i++) {
            char expected[200] = "";
            buf_clear(&trace);
            server.tls_watch.failed(server.tls_watch.arg, b, reasons[i]);
            if (!round && i < SERVER_REASONS_MAX)
                snprintf(expected, sizeof(expected),
                         "warning store: store: 10.0.0.1:40000 is not let in at port 29400, which "
                         "speaks TLS: %s\n",
                         reasons[i]);
            trace_is(expected);
            assert_int_equal(server.metrics.handshakes_failed,
                             round * (SERVER_REASONS_MAX + 1) + i + 1);
        }
    bufferevent_free(b);
}

static void test_who_speaks_no_tls_is_told_in_plain_words(void **state) {
    (void)state;
#define WHY  "this store speaks TLS: https, --rdzv-conf protocol=https,cacert=FILE"
#define BODY "{\"error\":\"" WHY "\",\"code\":9,\"message\":\"" WHY "\"}"
    char expected[600];
    snprintf(expected, sizeof(expected),
             "HTTP/1.1 426 Upgrade Required\r\nUpgrade: TLS/1.2\r\nConnection: close\r\n"
             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n" BODY,
             strlen(BODY));
    server_encrypt(&server, (struct tls *)(void *)&tls_, false);
    assert_false(server.tls_admits);
    assert_ptr_equal(server.tls, &tls_);
    assert_string_equal(server.tls_watch.plain, expected);
}

/* ---- no more files ---- */

static void no_more_files(int i) {
    errno = EMFILE;
    failed_fn[i]((struct evconnlistener *)(void *)&listeners[i], NULL);
}

static void test_the_store_whose_listener_it_is_waits_and_tells_it_once(void **state) {
    (void)state;
#define NO_MORE                                                                                    \
    "warning store: store: no more connections to port %d can be taken for now: Too many open "    \
    "files (ulimit -n)\nwait\n"
    struct server others[2] = {server, server};
    struct server *all[] = {&others[0], &server, &others[1]};
    for (int i = 0; i < 3; i++) {
        all[i]->port = (uint16_t)(1000 + i);
        server_unlisten(all[i]); /* one that does not listen, too */
        server_listen(all[i], (struct evconnlistener *)(void *)&listeners[i]);
    }
    trace_is("listen 0\nlisten 1\nlisten 2\n");
    for (int i = 0; i < 3; i++) {
        char expected[200];
        buf_clear(&trace);
        no_more_files(i);
        snprintf(expected, sizeof(expected), NO_MORE, 1000 + i);
        trace_is(expected);
        no_more_files(i);
        strcat(expected, "wait\n");
        trace_is(expected);
    }
    server_unlisten(all[1]);
    assert_ptr_equal(find_server((struct evconnlistener *)(void *)&listeners[2]), all[2]);
    server_unlisten(all[0]);
    server_unlisten(all[2]);
    assert_true(list_empty(&servers));
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        TEST(test_each_first_byte_is_told_of_once),
        TEST(test_what_is_sent_is_counted_when_it_is_taken),
        TEST(test_each_is_entered_where_it_is_counted),
        TEST(test_the_end_of_a_handshake_and_of_a_connection_are_passed_on),
        TEST(test_each_reason_of_a_handshake_is_told_once),
        TEST(test_who_speaks_no_tls_is_told_in_plain_words),
        TEST(test_the_store_whose_listener_it_is_waits_and_tells_it_once),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
