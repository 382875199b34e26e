/* Connections that end at every byte, requests in any pieces, and each bound of an embedded store from both sides, over loopback. */
#include "agent/core/kv.h"
#include "agent/core/lifeline.h"
#include "agent/store/answer.h"
#include "agent/store/lifelines.h"
#include "agent/store/limits/bounds.h"
#include "agent/store/reply.h"
#include "agent/store/server_state.h"
#include "agent/store/stream.h"
#include "base/sys/tcp.h"
#include "tests/agent/store/raw.h"

#include <signal.h>

enum { MB = 1 << 20 };

static struct loop *loop;
static struct kv *kv;
static struct server *server;

static int begin(void **state) {
    (void)state;
    loop = loop_new(NULL);
    kv = kv_new(1, 0);
    server = server_new(loop, kv, "127.0.0.1", 0, NULL);
    assert_non_null(server);
    for (int i = 0; i < BOUNDS; i++) { /* nothing is said */
        server->bounds.told[i] = 1;
        server->bounds.told_ns[i] = INT64_MAX / 2;
    }
    return 0;
}

static int finish(void **state) {
    (void)state;
    assert_false(server->stranger_told);
    server_free(server);
    kv_free(kv);
    loop_free(loop);
    return 0;
}

static void put_post(struct buf *out, const char *path, const char *body) {
    buf_printf(out, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s", path,
               strlen(body), body);
}

static void post(struct raw *r, const char *path, const char *body, const char *until) {
    BUF_FINI struct buf request = {0};
    put_post(&request, path, body);
    raw_ask(r, loop, server_port(server), &request, until);
}

/* On a connection of its own. */
static void says(const char *path, const char *body, const char *expected) {
    BUF_FINI struct buf request = {0};
    struct raw r;
    raw_put_request(&request, "POST", path, "Host: localhost\r\n", body);
    raw_ask(&r, loop, server_port(server), &request, NULL);
    if (!strstr(buf_str(&r.in), expected))
        fail_msg("%s is not in: %s", expected, buf_str(&r.in));
    raw_close(&r);
}

/* ---- cut, and in pieces ---- */

#define PUT   "{\"key\":\"eA==\",\"value\":\"eQ==\"}"
#define WATCH "{\"create_request\":{\"key\":\"eA==\"}}"

/* Ended behind so many bytes: in order, or as broken. */
static void cut(const struct buf *request, size_t n, bool broken) {
    struct raw r;
    raw_open(&r, loop, server_port(server));
    raw_send(&r, request->data, n);
    if (broken) {
        says("/v3/kv/range", "{\"key\":\"eA==\"}", " 200 "); /* what was sent is there by now */
        loop_source_free(r.source);
        tcp_close_as_broken(&r.fd);
    } else {
        shutdown(r.fd, SHUT_WR);
        raw_await(&r, NULL);
        if (n < request->len && strstr(buf_str(&r.in), " 200 "))
            fail_msg("%zu bytes were enough", n);
        raw_close(&r);
    }
    buf_fini(&r.in);
    says("/v3/kv/range", "{\"key\":\"eA==\"}", " 200 ");
    assert_int_equal(server_held(server), 0);
    assert_int_equal(server_watches(server), 0);
}

static void test_a_request_that_is_not_whole_does_nothing_and_leaves_nothing(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        BUF_FINI struct buf request = {0};
        put_post(&request, i / 2 ? "/v3/watch" : "/v3/kv/put", i / 2 ? WATCH : PUT);
        for (size_t n = 0; n < request.len; n++) {
            cut(&request, n, i % 2);
            assert_int_equal(kv_revision(kv), 1);
        }
    }
    assert_int_equal(tcp_count_connections(server_port(server)), 0);
}

static void test_requests_are_understood_in_whatever_pieces_they_come(void **state) {
    (void)state;
    BUF_FINI struct buf request = {0}, both = {0};
    put_post(&request, "/v3/kv/put", PUT);
    for (size_t n = 1; n < request.len; n++) {
        struct raw r;
        char answer[64];
        raw_open(&r, loop, server_port(server));
        raw_send(&r, request.data, n);
        says("/v3/kv/range", "{\"key\":\"eA==\"}", " 200 ");
        assert_int_equal(server_held(server), n);
        raw_send(&r, request.data + n, request.len - n);
        snprintf(answer, sizeof(answer), "{\"header\":{\"revision\":\"%zu\"}}", n + 1);
        raw_await(&r, answer);
        assert_int_equal(server_held(server), 0);
        raw_close(&r);
    }
    struct raw r; /* two at once, on one connection */
    put_post(&both, "/v3/kv/put", PUT);
    put_post(&both, "/v3/kv/put", PUT);
    raw_ask(&r, loop, server_port(server), &both, "5\"}}");
    char last[64];
    snprintf(last, sizeof(last), "{\"header\":{\"revision\":\"%zu\"}}", request.len + 2);
    raw_await(&r, last);
    raw_close(&r);
}

/* ---- sizes ---- */

static void with_body(size_t n, const char *expected) {
    BUF_FINI struct buf request = {0};
    struct raw r;
    char *body = malloc(n + 1);
    assert_non_null(body);
    memset(body, ' ', n);
    body[n] = '\0';
    raw_put_request(&request, "POST", "/v3/kv/put", "Host: localhost\r\n", body);
    raw_open(&r, loop, server_port(server));
    for (size_t at = 0; at < request.len && !r.ended;) { /* more than a socket holds */
        ssize_t sent = send(r.fd, request.data + at, request.len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        at += sent > 0 ? (size_t)sent : 0;
        if (sent <= 0)
            says("/", "", " 404 ");
    }
    raw_await(&r, "\r\n\r\n");
    if (!strstr(buf_str(&r.in), expected))
        fail_msg("%zu bytes: %s", n, buf_str(&r.in));
    raw_close(&r);
    free(body);
}

static void test_a_body_of_two_megabytes_is_read_and_no_more(void **state) {
    (void)state;
    with_body(2 * MB, " 400 ");
    with_body(2 * MB + 1, " 413 ");
}

/* ---- watches ---- */

static void test_others_than_agents_have_so_many_watches_of_ranges(void **state) {
    (void)state;
#define RANGE "{\"create_request\":{\"key\":\"YQ==\",\"range_end\":\"Yg==\"}}"
#define RUN                                                                                        \
    "{\"create_request\":{\"key\":\"L3JhbmtydW4vam9iLw==\",\"range_end\":\"L3JhbmtydW4vam9iL3o="   \
    "\"}}"
    static struct raw all[STREAM_RANGES_MAX], one, run;
    for (int i = 0; i < STREAM_RANGES_MAX; i++)
        post(&all[i], "/v3/watch", RANGE, "\"created\":true");
    says("/v3/watch", RANGE,
         "{\"error\":\"this store has as many watches of ranges as it takes\",\"code\":8,");
    says("/v3/watch", RANGE, "HTTP/1.1 429 ");
    assert_int_equal(server->bounds.hits[BOUND_WATCHES], 2);
    assert_int_equal(server_watches(server), STREAM_RANGES_MAX);
    post(&one, "/v3/watch", WATCH, "\"created\":true");
    says("/v3/kv/put", "{\"key\":\"L3JhbmtydW4vam9iL2N1cg==\",\"value\":\"e30=\"}", " 200 ");
    post(&run, "/v3/watch", RUN, "\"created\":true"); /* an agent's */
    assert_int_equal(server_agents(server), 1);
    assert_int_equal(server->metrics.requests[9][0], STREAM_RANGES_MAX + 2);
    assert_int_equal(server->metrics.requests[9][7], 2);
    for (int i = 0; i < STREAM_RANGES_MAX; i++)
        raw_close(&all[i]);
    raw_close(&one);
    raw_close(&run);
}

/* ---- answers ---- */

static void put_key(const char *prefix, int i, struct kv_bytes value) {
    char key[16];
    struct arena a = {0};
    struct kv_txn_result result;
    snprintf(key, sizeof(key), "%s%05d", prefix, i);
    struct kv_op op = {.kind = KV_PUT, .key = kv_string(key), .value = value};
    assert_int_equal(
        kv_txn(kv, &(struct kv_txn){.success = &op, .n_success = 1}, &a, &result, NULL), 0);
    arena_fini(&a);
}

/* That nobody reads. */
static void ask_in_vain(struct raw *r, const char *body) {
    BUF_FINI struct buf request = {0};
    int small = 4096;
    put_post(&request, "/v3/kv/range", body);
    raw_open(r, loop, server_port(server));
    setsockopt(r->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    loop_fd_set(r->source, 0);
    raw_send(r, request.data, request.len);
    says("/", "", " 404 ");
}

/* So many keys they show, and not one more. */
static void test_long_answers_show_so_many_keys_at_once(void **state) {
    (void)state;
    enum { LONG = ANSWER_COST_MAX - 1, N = MB / LONG, REST = MB - N * LONG };
    static const char most[] = "{\"key\":\"azA=\",\"range_end\":\"bA==\"}"; /* k0 to l */
    static const char rest[] = "{\"key\":\"azk=\",\"range_end\":\"bA==\"}"; /* k9 to l */
    static char large[10000];
    struct raw hands[N + 1];
    memset(large, 'v', sizeof(large));
    for (int i = 0; i < LONG - REST; i++)
        put_key(i < 100000 ? "k0" : "k1", i % 100000, kv_string("v"));
    for (int i = 0; i < REST; i++)
        put_key("k9", i, (struct kv_bytes){large, sizeof(large)});
    server_limit(server,
                 &(struct server_limits){64 * MB, 640 * MB, 640 * MB, 640 * MB, 60000000000, 0});
    for (int i = 0; i < N; i++)
        ask_in_vain(&hands[i], most);
    assert_int_equal(replies_held(server->replies), N * LONG);
    ask_in_vain(&hands[N], rest);
    assert_int_equal(replies_held(server->replies), MB);
    assert_int_equal(server->bounds.hits[BOUND_ANSWERS], 0);
    says(
        "/v3/kv/range", rest,
        "{\"error\":\"this store is answering too much; ask again, and with a limit\",\"code\":8,");
    assert_int_equal(server->bounds.hits[BOUND_ANSWERS], 1);
    assert_int_equal(replies_held(server->replies), MB);
    says("/v3/kv/range", "{\"key\":\"azAwMDAwMQ==\"}", "\"count\":\"1\""); /* what is short */
    for (int i = 0; i <= N; i++)
        raw_close(&hands[i]);
    says("/v3/kv/range", most, "\"count\":\"131071\"");
    assert_int_equal(server->bounds.hits[BOUND_ANSWERS], 1);
}

/* ---- lifelines ---- */

/* It is never answered, and its connection is an agent's. */
static void test_a_lifeline_is_counted_and_is_an_agents(void **state) {
    (void)state;
    struct raw r;
    BUF_FINI struct buf request = {0};
    char own[TCP_ENDS_MAX], peer[TCP_ENDS_MAX];
    struct lifeline_claim claim = {
        .inc = "0123456789abcdef", .uid = "00112233445566778899aabbccddeeff", .revision = 1};
    raw_open(&r, loop, server_port(server));
    assert_int_equal(tcp_ends(r.fd, own, peer), 0);
    lifelines_put_request(&request, "job", &claim, &(struct lifeline_ends){own, peer}, NULL);
    raw_send(&r, request.data, request.len);
    while (!server_lifelines(server)) /* it is seen to come */
        says("/", "", " 404 ");
    assert_int_equal(server->metrics.requests[10][0], 1);
    assert_int_equal(server_agents(server), 1);
    assert_int_equal(server_held(server), 0);
    assert_int_equal(r.in.len, 0);
    assert_false(r.ended);
    raw_close(&r);
    while (server_lifelines(server)) /* and to go */
        says("/", "", " 404 ");
    while (server_agents(server))
        says("/", "", " 404 ");
}

/* ---- numbers ---- */

static void test_the_numbers_are_those_of_this_moment(void **state) {
    (void)state;
    struct raw watch, quiet, numbers;
    BUF_FINI struct buf request = {0};
    post(&watch, "/v3/watch", WATCH, "\"created\":true");
    post(&quiet, "/v3/kv/put", "{\"key\":\"L3JhbmtydW4vam9iL2N1cg==\",\"value\":\"e30=\"}", "}}");
    server->quota.runs_full = true;
    server->bounds.hits[BOUND_TIME] = 3;
    buf_puts(&request, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    raw_ask(&numbers, loop, server_port(server), &request, NULL);
    static const char *const expected[] = {
        "HTTP/1.1 200 OK\r\n",
        "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n",
        "\nrankrun_store_connections 3\n",
        "\nrankrun_store_watches 1\n",
        "\nrankrun_store_lifelines 0\n",
        "\nrankrun_store_agent_connections 1\n",
        "\nrankrun_store_held_bytes 0\n",
        "\nrankrun_store_full 1\n",
        "\nrankrun_store_others_full 0\n",
        "\nrankrun_store_keys 1\n",
        "\nrankrun_store_connections_total 3\n",
        "\nrankrun_store_bounded_total{bound=\"time\"} 3\n",
        "\nrankrun_store_requests_total{kind=\"metrics\",code=\"200\"} 1\n",
        "\nrankrun_store_requests_total{kind=\"watch\",code=\"200\"} 1\n",
        "\nrankrun_store_requests_total{kind=\"kv/put\",code=\"200\"} 1\n",
    };
    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
        if (!strstr(buf_str(&numbers.in), expected[i]))
            fail_msg("%s is not in: %s", expected[i], buf_str(&numbers.in));
    raw_close(&watch);
    raw_close(&quiet);
    raw_close(&numbers);
}

/* ---- what is full ---- */

static void test_what_is_written_is_counted_and_refused_where_it_is_full(void **state) {
    (void)state;
    says("/v3/kv/put", PUT, " 200 ");
    size_t written = server->quota.written;
    assert_int_equal(written, strlen(PUT) + 256);
    says("/v3/kv/range", "{\"key\":\"eA==\"}", " 200 ");
    says("/v3/kv/put", "{", " 400 ");
    says("/v3/kv/deleterange", "{\"key\":\"eQ==\"}", " 200 ");
    assert_int_equal(server->quota.written, written);
    says("/v3/lease/grant", "{\"ID\":\"7\",\"TTL\":\"60\"}", " 200 ");
    assert_int_equal(server->quota.written,
                     written + strlen("{\"ID\":\"7\",\"TTL\":\"60\"}") + 256);
    server->quota.others_full = true;
    server->quota.looked_at_ns = INT64_MAX / 2; /* not looked at for now */
    says("/v3/kv/put", PUT, "HTTP/1.1 429 ");
    assert_int_equal(server->bounds.hits[BOUND_KEPT], 1);
    says("/v3/kv/deleterange", "{\"key\":\"eA==\"}", " 200 ");
    says("/v3/kv/put", PUT, " 200 "); /* it was looked at anew */
    assert_int_equal(server->bounds.hits[BOUND_KEPT], 1);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        TEST(test_a_request_that_is_not_whole_does_nothing_and_leaves_nothing),
        TEST(test_requests_are_understood_in_whatever_pieces_they_come),
        TEST(test_a_body_of_two_megabytes_is_read_and_no_more),
        TEST(test_others_than_agents_have_so_many_watches_of_ranges),
        TEST(test_long_answers_show_so_many_keys_at_once),
        TEST(test_a_lifeline_is_counted_and_is_an_agents),
        TEST(test_the_numbers_are_those_of_this_moment),
        TEST(test_what_is_written_is_counted_and_refused_where_it_is_full),
    };
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
