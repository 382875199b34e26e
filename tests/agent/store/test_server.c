/* Client and server over loopback, on one loop. */
#include "base/buf.h"
#include "base/sys/tcp.h"
#include "tests/agent/store/contract_tests.h"
#include "tests/agent/store/serving.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

static int set_up(void **state) {
    serving_begin(state, NULL);
    return 0;
}

static void test_a_watch_of_what_is_compacted_ends_and_says_so(void **state) {
    struct contract *c = *state;
    contract_fresh(c);
    put(c, "a", "1");
    int64_t from = c->revision;
    put(c, "a", "2");
    assert_int_equal(kv_compact(kv, c->revision, NULL), 0);
    watch_all(c, from);
    await_events(c, 1);
    assert_true(c->ended);
    assert_int_equal(c->compact_revision, from + 1);
}

static void test_a_store_that_is_not_there_leaves_the_outcome_unknown(void **state) {
    struct contract *c = *state;
    int fd;
    uint16_t port;
    assert_int_equal(tcp_reserve_port(&fd, &port, NULL), 0);
    struct contract away;
    contract_begin(&away, c->loop, client_of_port(c->loop, port, NULL));
    contract_fresh(&away);
    struct kv_op op = {.kind = KV_RANGE, .key = key(&away, "a")};
    struct kv_txn txn = {.success = &op, .n_success = 1};
    ask(&away, &txn);
    assert_int_equal(away.reply.outcome, STORE_UNKNOWN);
    assert_non_null(strstr(away.why, "refused"));
    watch_all(&away, 0);
    await_events(&away, 1);
    assert_true(away.ended);
    store_free(away.store);
    contract_end(&away);
    close(fd);
}

static void test_a_store_that_does_not_answer_is_given_up_at_the_timeout(void **state) {
    struct contract *c = *state;
    int fd;
    uint16_t port;
    assert_int_equal(tcp_listen("127.0.0.1", 0, 8, &fd, &port, NULL), 0);
    struct contract mute;
    contract_begin(&mute, c->loop, client_of_port(c->loop, port, NULL));
    contract_fresh(&mute);
    struct kv_op op = {.kind = KV_RANGE, .key = key(&mute, "a")};
    struct kv_txn txn = {.success = &op, .n_success = 1};
    store_txn(mute.store, &txn, 50, on_contract_reply, &mute);
    await_reply(&mute);
    assert_int_equal(mute.reply.outcome, STORE_UNKNOWN);
    store_free(mute.store);
    contract_end(&mute);
    close(fd);
}

/* Another store behind the first endpoint's back: the second is tried when the first is away. */
static void test_the_next_endpoint_is_tried_when_one_is_away(void **state) {
    struct contract *c = *state;
    int fd;
    uint16_t port;
    char endpoints[64];
    assert_int_equal(tcp_reserve_port(&fd, &port, NULL), 0);
    snprintf(endpoints, sizeof(endpoints), "127.0.0.1:%u,127.0.0.1:%u", port, server_port(server));
    struct contract two;
    contract_begin(&two, c->loop, store_client_new(c->loop, endpoints, NULL, NULL));
    contract_fresh(&two);
    struct kv_op op = {.kind = KV_RANGE, .key = key(&two, "a")};
    struct kv_txn txn = {.success = &op, .n_success = 1};
    ask(&two, &txn);
    assert_int_equal(two.reply.outcome, STORE_UNKNOWN);
    ask(&two, &txn);
    assert_int_equal(two.reply.outcome, STORE_ANSWERED);
    store_free(two.store);
    contract_end(&two);
    close(fd);
}

static void test_a_server_that_goes_ends_the_watch(void **state) {
    struct contract *c = *state;
    struct kv *own = kv_new(2, 0);
    struct server *s = server_new(c->loop, own, "127.0.0.1", 0, NULL);
    struct contract other;
    contract_begin(&other, c->loop, client_of_port(c->loop, server_port(s), NULL));
    contract_fresh(&other);
    watch_all(&other, 1);
    put(&other, "a", "1");
    await_events(&other, 1);
    server_free(s);
    await_events(&other, 2);
    assert_true(other.ended);
    store_free(other.store);
    contract_end(&other);
    kv_free(own);
}

static void on_inside_write(void *arg) {
    (void)arg;
    server_changed(server);
}

/* The agent that hosts the store: it uses the keys directly, the others over HTTP. */
static void test_a_watch_in_the_process_and_one_outside_see_the_same(void **state) {
    struct contract *c = *state;
    struct contract inside;
    contract_begin(&inside, c->loop, store_local_new(c->loop, kv, on_inside_write, NULL));
    contract_fresh(c);
    strcpy(inside.prefix, c->prefix);
    put(c, "z", "0");
    watch_all(c, c->revision + 1);
    watch_all(&inside, c->revision + 1);
    put(c, "a", "1");
    put(&inside, "b", "2");
    await_events(c, 2);
    await_events(&inside, 2);
    assert_false(c->ended || inside.ended);
    assert_string_equal(c->events[1].value, "2");
    assert_string_equal(inside.events[0].value, "1");
    store_cancel(c->watch);
    store_free(inside.store);
    contract_end(&inside);
}

/* ---- requests as bytes: what a client of ours would never send ---- */

struct raw {
    struct loop *loop;
    struct loop_source *source;
    struct buf in;
    bool ended;
    const char *until; /* stop when this has come; NULL: at the end */
};

static void on_raw(void *arg, int fd, int what) {
    struct raw *r = arg;
    char piece[4096];
    (void)what;
    ssize_t n = recv(fd, piece, sizeof(piece), 0);
    if (n > 0)
        buf_put(&r->in, piece, (size_t)n);
    r->ended = n <= 0;
    if (r->ended || (r->until && strstr(buf_str(&r->in), r->until)))
        loop_stop(r->loop);
}

static int raw_connect(void) {
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(server_port(server)),
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

/* Sends text and returns what comes until `until` has come or the server hangs up. */
static void raw_ask(struct contract *c, const void *text, size_t n, const char *until,
                    struct raw *r) {
    int fd = raw_connect();
    *r = (struct raw){.loop = c->loop, .until = until};
    r->source = loop_fd(c->loop, fd, LOOP_READ, on_raw, r);
    assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), (ssize_t)n);
    contract_run(c);
    loop_source_free(r->source);
    close(fd);
}

static void refused(struct contract *c, const char *path, const char *body, const char *expected) {
    struct raw r;
    struct buf b = {0};
    buf_printf(&b, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s", path,
               strlen(body), body);
    raw_ask(c, b.data, b.len, "}", &r);
    if (!strstr(buf_str(&r.in), expected))
        fail_msg("%s %s: expected '%s' in:\n%s", path, body, expected, buf_str(&r.in));
    buf_fini(&b);
    buf_fini(&r.in);
}

static void test_bad_requests_get_the_errors_of_etcd(void **state) {
    struct contract *c = *state;
    refused(c, "/v3/kv/put", "{\"key\":", "400 ");
    refused(c, "/v3/kv/put", "{\"key\":", "\"code\":3");
    refused(c, "/v3/kv/put", "", "\"code\":3");
    refused(c, "/v3/kv/put", "[]", "expected a JSON object");
    refused(c, "/v3/kv/put", "{\"key\":\"!\"}", "base64");
    refused(c, "/v3/kv/put", "{\"key\":5}", "base64");
    refused(c, "/v3/kv/put", "{\"value\":\"eA==\"}", "\"etcdserver: key is not provided\"");
    refused(c, "/v3/kv/put", "{\"key\":\"eA==\",\"lease\":\"x\"}", "integer");
    refused(c, "/v3/kv/range", "{\"key\":\"eA==\",\"revision\":\"99999999\"}", "\"code\":11");
    refused(c, "/v3/kv/txn", "{\"success\":[{}]}", "neither range");
    refused(c, "/v3/kv/txn", "{\"compare\":[{\"target\":\"SIZE\"}]}", "unknown target");
    refused(c, "/v3/watch", "{}", "create_request");
    refused(c, "/v3/lease/revoke", "{\"ID\":\"9\"}", "404 ");
    refused(c, "/v3/nowhere", "{}", "404 ");
    refused(c, "/", "{}", "404 ");
}

static void test_requests_that_are_too_big_are_refused(void **state) {
    struct contract *c = *state;
    struct raw r;
    static const char body[] =
        "POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n";
    raw_ask(c, body, sizeof(body) - 1, "\r\n", &r);
    assert_non_null(strstr(buf_str(&r.in), " 413 "));
    buf_fini(&r.in);

    struct buf header = {0};
    buf_puts(&header, "POST /v3/kv/put HTTP/1.1\r\nX: ");
    for (int i = 0; i < 20000; i++)
        buf_putc(&header, 'x');
    raw_ask(c, header.data, header.len, "\r\n", &r);
    assert_null(strstr(buf_str(&r.in), " 200 "));
    buf_fini(&header);
    buf_fini(&r.in);
}

static void asked_with(struct contract *c, const char *path, const char *header,
                       const char *expected) {
    static const char body[] = "{\"key\":\"eA==\"}";
    struct raw r;
    struct buf b = {0};
    buf_printf(&b, "POST %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %zu\r\n\r\n%s", path, header,
               strlen(body), body);
    raw_ask(c, b.data, b.len, "}", &r);
    if (!strstr(buf_str(&r.in), expected))
        fail_msg("%s: expected '%s' in:\n%s", header, expected, buf_str(&r.in));
    buf_fini(&b);
    buf_fini(&r.in);
}

static void test_without_the_token_nothing_is_answered(void **state) {
    static const char *const paths[] = {"/v3/kv/range", "/v3/watch", "/v3/rankrun/lifeline",
                                        "/metrics", "/nowhere"};
    struct contract *c = *state;
    server_demand(server, "s3cret");
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        asked_with(c, paths[i], "", "401 ");
        asked_with(c, paths[i], "", "token_file=FILE");
        asked_with(c, paths[i], "Authorization: Bearer s3cre\r\n", "401 ");
        asked_with(c, paths[i], "Authorization: s3cret\r\n", "not the one");
    }
    asked_with(c, paths[0], "Authorization: Bearer s3cret\r\n", "200 ");
    server_demand(server, NULL);
    asked_with(c, paths[0], "", "200 ");
}

static void test_what_a_web_page_asks_is_refused(void **state) {
    struct contract *c = *state;
    static const char get[] = "GET /metrics HTTP/1.1\r\nHost: example.com\r\n\r\n";
    struct raw r;
    asked_with(c, "/v3/kv/put", "Origin: http://example.com\r\n", "403 ");
    asked_with(c, "/v3/watch", "Origin: http://example.com\r\n", "has an Origin");
    raw_ask(c, get, sizeof(get) - 1, "}", &r);
    assert_non_null(strstr(buf_str(&r.in), " 403 "));
    buf_fini(&r.in);
    server_allow(server, "example.com");
    raw_ask(c, get, sizeof(get) - 1, "bound=\"pages\"} 3", &r);
    assert_non_null(strstr(buf_str(&r.in), " 200 "));
    buf_fini(&r.in);
    server_allow(server, NULL);
    /* A name in Host is none of a page's where a token is shown. */
    server_demand(server, "s3cret");
    raw_ask(c, get, sizeof(get) - 1, "}", &r);
    assert_non_null(strstr(buf_str(&r.in), " 401 "));
    buf_fini(&r.in);
    server_demand(server, NULL);
}

static void test_a_client_that_knows_the_token_is_answered(void **state) {
    struct contract *c = *state;
    struct store_access knows = {.token = "s3cret"}, guesses = {.token = "secret"};
    unsigned port = server_port(server);
    server_demand(server, "s3cret");
    struct contract one, other;
    contract_begin(&one, c->loop, client_of_port(c->loop, port, &knows));
    contract_fresh(&one);
    watch_all(&one, 1);
    put(&one, "a", "1");
    await_events(&one, 1);
    store_free(one.store);
    contract_end(&one);
    contract_begin(&other, c->loop, client_of_port(c->loop, port, &guesses));
    contract_fresh(&other);
    struct kv_op op = {.kind = KV_RANGE, .key = key(&other, "a")};
    struct kv_txn txn = {.success = &op, .n_success = 1};
    ask(&other, &txn);
    assert_int_equal(other.reply.outcome, STORE_UNKNOWN);
    assert_string_equal(other.why, "the token is not the one that this store was given");
    store_free(other.store);
    contract_end(&other);
    server_demand(server, NULL);
}

static void test_a_client_that_speaks_no_http_harms_nobody(void **state) {
    struct contract *c = *state;
    struct raw r;
    contract_fresh(c);
    static const char tcpstore[] = "\x00\x05\x00\x00\x00\x00\x00\x00\x00init/\r\n\r\n";
    raw_ask(c, tcpstore, sizeof(tcpstore) - 1, NULL, &r);
    assert_true(r.ended);
    buf_fini(&r.in);
    put(c, "a", "1");
}

/* The client goes away in the middle of a watch: the server must neither write to it nor keep it.
 */
static void test_a_watcher_that_vanished_is_forgotten(void **state) {
    struct contract *c = *state;
    contract_fresh(c);
    watchers_vanish(c);
}

/* A fuzzer's: as etcd has it, the smallest key is watched, and the store lives. */
static void test_a_watch_without_a_key_is_one_of_the_smallest(void **state) {
    struct contract *c = *state;
    struct raw r;
    static const char watch[] = "POST /v3/watch HTTP/1.1\r\nHost: x\r\nContent-Length: 21\r\n\r\n"
                                "{\"create_request\":{}}";
    raw_ask(c, watch, sizeof(watch) - 1, "\"created\":true", &r);
    assert_non_null(strstr(buf_str(&r.in), "\"created\":true"));
    buf_fini(&r.in);
    contract_fresh(c);
    put(c, "a", "1");
}

/* Reads nothing for as long as it takes, and is cut off; the writer never notices. */
static void test_a_watcher_that_is_too_slow_is_cut_off(void **state) {
    struct contract *c = *state;
    contract_fresh(c);
    static const char all[] = "{\"create_request\":{\"key\":\"AA==\",\"range_end\":\"AA==\"}}";
    char watch[256];
    snprintf(watch, sizeof(watch),
             "POST /v3/watch HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s", strlen(all),
             all);
    int fd = raw_connect(), small = 4096;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    assert_int_equal(send(fd, watch, strlen(watch), 0), strlen(watch));
    for (int i = 0; i < 1000 && server_watches(server) == 0; i++)
        get(c, "a");
    static char big[1 << 20];
    memset(big, 'x', sizeof(big));
    struct kv_op op = {.kind = KV_PUT, .key = key(c, "big"), .value = {big, sizeof(big)}};
    int puts = 0;
    assert_int_equal(server_watches(server), 1);
    for (; puts < 64 && server_watches(server); puts++)
        ask_op(c, op);
    assert_int_equal(server_watches(server), 0);
    assert_true(puts > 4);
    close(fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CONTRACT_TESTS,
        cmocka_unit_test(test_a_watch_of_what_is_compacted_ends_and_says_so),
        cmocka_unit_test(test_a_store_that_is_not_there_leaves_the_outcome_unknown),
        cmocka_unit_test(test_a_store_that_does_not_answer_is_given_up_at_the_timeout),
        cmocka_unit_test(test_the_next_endpoint_is_tried_when_one_is_away),
        cmocka_unit_test(test_a_server_that_goes_ends_the_watch),
        cmocka_unit_test(test_a_watch_in_the_process_and_one_outside_see_the_same),
        cmocka_unit_test(test_bad_requests_get_the_errors_of_etcd),
        cmocka_unit_test(test_requests_that_are_too_big_are_refused),
        cmocka_unit_test(test_without_the_token_nothing_is_answered),
        cmocka_unit_test(test_what_a_web_page_asks_is_refused),
        cmocka_unit_test(test_a_client_that_knows_the_token_is_answered),
        cmocka_unit_test(test_a_client_that_speaks_no_http_harms_nobody),
        cmocka_unit_test(test_a_watcher_that_vanished_is_forgotten),
        cmocka_unit_test(test_a_watch_without_a_key_is_one_of_the_smallest),
        cmocka_unit_test(test_a_watcher_that_is_too_slow_is_cut_off),
    };
    signal(SIGPIPE, SIG_IGN); /* as in every program that has a store */
    return cmocka_run_group_tests(tests, set_up, serving_end);
}
