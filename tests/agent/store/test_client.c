/* The client before servers that are not as it would like them: an etcd of another age, one that
 * asks for a user, one that is full, something that is none. They are played by evhttp in front of
 * the embedded store's answers. */
#include "agent/store/access.h"
#include "agent/store/answer.h"
#include "base/buf.h"
#include "base/sys/tcp.h"
/* Its own tests are for other programs. */
#pragma GCC diagnostic ignored "-Wunused-function"
#include "tests/agent/store/contract.h"

#include <event2/buffer.h>
#include <event2/http.h>

enum { OPEN_MS = 20000 };

static struct contract c;
static struct kv *kv;
static struct evhttp *http;
static struct store_access access_;

/* What is played. */
static struct play {
    const char *prefix, *body; /* body: what is said to everything */
    int status;
    int token, asked, calls; /* the token that is good; how often one was asked for */
    bool mute;               /* authentication is never answered */
    const char *sign_in_error;
} play;

static void say(struct evhttp_request *req, int status, const char *text) {
    struct evbuffer *out = evbuffer_new();
    evbuffer_add_printf(out, "%s", text);
    evhttp_send_reply(req, status, NULL, out);
    evbuffer_free(out);
}

static void sign_in(struct evhttp_request *req, const char *asked) {
    char text[64];
    play.asked++;
    assert_non_null(strstr(asked, "\"name\":\"me\""));
    assert_non_null(strstr(asked, "\"password\":\"a,\\\"b\""));
    snprintf(text, sizeof(text), "{\"header\":{},\"token\":\"t%d\"}", play.token);
    if (play.sign_in_error)
        say(req, 400, play.sign_in_error);
    else if (!play.mute)
        say(req, 200, text);
}

static bool is_good_token(struct evhttp_request *req) {
    const char *t = evhttp_find_header(evhttp_request_get_input_headers(req), "Authorization");
    char good[16];
    snprintf(good, sizeof(good), "t%d", play.token);
    return !play.token || (t && strcmp(t, good) == 0);
}

static void on_request(struct evhttp_request *req, void *arg) {
    (void)arg;
    const char *path = evhttp_request_get_uri(req);
    struct evbuffer *in = evhttp_request_get_input_buffer(req);
    struct evkeyvalq *headers = evhttp_request_get_input_headers(req);
    struct buf body = {0}, at = {0};
    struct answer a = {0};
    play.calls++;
    buf_put(&body, evbuffer_pullup(in, -1), evbuffer_get_length(in));
    if (play.body) {
        say(req, play.status, play.body);
    } else if (strncmp(path, play.prefix, strlen(play.prefix)) != 0) {
        say(req, 404, "404 page not found\n");
    } else if (strstr(path, "/auth/authenticate")) {
        sign_in(req, buf_str(&body));
    } else if (play.token && !evhttp_find_header(headers, "Authorization")) {
        say(req, 400, "{\"error\":\"etcdserver: user name is empty\",\"code\":3}");
    } else if (!is_good_token(req)) {
        say(req, 401, "{\"error\":\"etcdserver: invalid auth token\",\"code\":16}");
    } else {
        buf_printf(&at, "/v3/%s", path + strlen(play.prefix));
        answer_request(&a, kv, buf_str(&at), buf_str(&body), body.len, 1, NULL);
        say(req, a.status, buf_str(&a.body));
    }
    answer_fini(&a, kv);
    buf_fini(&body);
    buf_fini(&at);
}

static int set_up(void **state) {
    struct loop *l = loop_new(NULL);
    int fd;
    uint16_t port;
    char endpoint[64];
    (void)state;
    play = (struct play){.prefix = "/v3/"};
    access_ = (struct store_access){0};
    kv = kv_new(1, 0);
    assert_int_equal(tcp_listen("127.0.0.1", 0, 8, &fd, &port, NULL), 0);
    http = evhttp_new(loop_base(l));
    evhttp_set_gencb(http, on_request, NULL);
    assert_int_equal(evhttp_accept_socket(http, fd), 0);
    snprintf(endpoint, sizeof(endpoint), "127.0.0.1:%u", port);
    contract_begin(&c, l, store_client_new(l, endpoint, &access_, NULL));
    contract_fresh(&c);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    store_free(c.store);
    contract_end(&c);
    evhttp_free(http);
    kv_free(kv);
    loop_free(c.loop);
    return 0;
}

static enum store_outcome read_a_key(int64_t timeout_ms) {
    struct kv_op op = {.kind = KV_RANGE, .key = key(&c, "a")};
    struct kv_txn txn = {.success = &op, .n_success = 1};
    store_txn(c.store, &txn, timeout_ms, on_contract_reply, &c);
    await_reply(&c);
    return c.reply.outcome;
}

#define UNKNOWN_WITH(words)                                                                        \
    do {                                                                                           \
        assert_int_equal(read_a_key(OPEN_MS), STORE_UNKNOWN);                                      \
        if (!strstr(c.why, words))                                                                 \
            fail_msg("\"%s\" is not in \"%s\"", words, c.why);                                     \
    } while (0)

static void play_user(int token) {
    access_.user = "me";
    access_.password = "a,\"b";
    play.token = token;
}

static void test_an_etcd_3_3_is_found_out_by_the_first_call(void **state) {
    (void)state;
    play.prefix = "/v3beta/";
    assert_int_equal(read_a_key(OPEN_MS), STORE_ANSWERED);
    assert_int_equal(play.calls, 2);
    assert_int_equal(read_a_key(OPEN_MS), STORE_ANSWERED);
    assert_int_equal(play.calls, 3);
}

static void test_an_etcd_3_3_that_wants_a_user_is_found_out_too(void **state) {
    (void)state;
    play.prefix = "/v3beta/";
    play_user(1);
    assert_int_equal(read_a_key(OPEN_MS), STORE_ANSWERED);
}

static void test_what_is_no_etcd_is_asked_twice_and_told(void **state) {
    (void)state;
    play.prefix = "/elsewhere/";
    UNKNOWN_WITH("404 page not found: this is no answer of an etcd v3");
    assert_int_equal(play.calls, 2);
    play.body = "<html>welcome</html>";
    play.status = 200;
    UNKNOWN_WITH("");
    play.status = 400;
    play.body = "Client sent an HTTP request to an HTTPS server.\n";
    UNKNOWN_WITH("does it want --rdzv-conf protocol=https?");
}

static void test_an_etcd_that_is_full_is_as_one_that_is_away(void **state) {
    (void)state;
    play.body = "{\"error\":\"etcdserver: mvcc: database space exceeded\",\"code\":8}";
    play.status = 429;
    UNKNOWN_WITH("etcd is full: compact, defrag and alarm disarm");
    play.status = 403; /* an older gateway's */
    UNKNOWN_WITH("etcd is full");
}

/* As etcd 3.3, 3.4 and 3.5 say it. */
static void test_a_lease_that_is_there_already_is_granted_by_every_etcd(void **state) {
    static const struct {
        int status;
        const char *body;
    } answers[] = {
        {412, "{\"error\":\"etcdserver: lease already exists\",\"code\":9}"},
        {412,
         "{\"error\":\"etcdserver: lease already exists\",\"message\":\"etcdserver: lease already "
         "exists\",\"code\":9}"},
        {400, "{\"code\":9, \"message\":\"etcdserver: lease already exists\"}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
        play.status = answers[i].status;
        play.body = answers[i].body;
        store_grant(c.store, 7, 60, OPEN_MS, on_contract_reply, &c);
        await_reply(&c);
        assert_int_equal(c.reply.outcome, STORE_ANSWERED);
        assert_int_equal(c.reply.lease, 7);
        assert_int_equal(c.reply.ttl_s, 60);
    }
    play.body = "{\"code\":9, \"message\":\"etcdserver: too large lease TTL\"}";
    store_grant(c.store, 7, 60, OPEN_MS, on_contract_reply, &c);
    await_reply(&c);
    assert_int_equal(c.reply.outcome, STORE_REFUSED);
}

static void test_a_user_signs_in_once(void **state) {
    (void)state;
    play_user(1);
    assert_int_equal(read_a_key(OPEN_MS), STORE_ANSWERED);
    assert_int_equal(read_a_key(OPEN_MS), STORE_ANSWERED);
    assert_int_equal(play.asked, 1);
}

static void
test_a_token_that_is_no_longer_taken_is_renewed_by_the_call_that_finds_out(void **state) {
    (void)state;
    play_user(1);
    assert_int_equal(read_a_key(OPEN_MS), STORE_ANSWERED);
    play.token = 2;
    assert_int_equal(read_a_key(OPEN_MS), STORE_ANSWERED);
    assert_int_equal(play.asked, 2);
}

static void test_a_wrong_password_is_told_with_the_user(void **state) {
    (void)state;
    play_user(1);
    play.sign_in_error = "{\"error\":\"etcdserver: authentication failed, invalid user ID or "
                         "password\",\"code\":3}";
    UNKNOWN_WITH("user me: etcdserver: authentication failed");
    UNKNOWN_WITH("these are of --rdzv-conf user and password");
    play.sign_in_error = NULL;
    assert_int_equal(read_a_key(OPEN_MS), STORE_ANSWERED);
}

static void test_an_etcd_without_authentication_takes_a_user_all_the_same(void **state) {
    (void)state;
    play_user(0);
    play.sign_in_error = "{\"error\":\"etcdserver: authentication is not enabled\",\"code\":9}";
    assert_int_equal(read_a_key(OPEN_MS), STORE_ANSWERED);
}

static void test_an_etcd_that_begins_to_ask_for_a_user_is_told_one(void **state) {
    (void)state;
    play_user(0);
    play.sign_in_error = "{\"error\":\"etcdserver: authentication is not enabled\",\"code\":9}";
    assert_int_equal(read_a_key(OPEN_MS), STORE_ANSWERED);
    play_user(1);
    play.sign_in_error = NULL;
    assert_int_equal(read_a_key(OPEN_MS), STORE_ANSWERED);
    assert_int_equal(play.asked, 2);
}

static void test_a_call_that_waits_for_a_token_ends_in_its_time(void **state) {
    (void)state;
    play_user(1);
    play.mute = true;
    assert_int_equal(read_a_key(50), STORE_UNKNOWN);
    assert_non_null(strstr(c.why, "in time"));
    store_watch(c.store, kv_string(c.prefix), key_end(&c), 1, 50, on_contract_news, &c);
    await_events(&c, 1);
    assert_true(c.ended);
}

static void test_calls_that_wait_for_a_token_can_be_cancelled(void **state) {
    (void)state;
    play_user(1);
    struct kv_op op = {.kind = KV_RANGE, .key = key(&c, "a")};
    struct kv_txn txn = {.success = &op, .n_success = 1};
    struct store_call *other = store_txn(c.store, &txn, OPEN_MS, on_contract_reply, &c);
    store_cancel(other);
    assert_int_equal(read_a_key(OPEN_MS), STORE_ANSWERED);
    store_txn(c.store, &txn, OPEN_MS, on_contract_reply, &c); /* goes with the store */
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_an_etcd_3_3_is_found_out_by_the_first_call),
        TEST(test_an_etcd_3_3_that_wants_a_user_is_found_out_too),
        TEST(test_what_is_no_etcd_is_asked_twice_and_told),
        TEST(test_an_etcd_that_is_full_is_as_one_that_is_away),
        TEST(test_a_lease_that_is_there_already_is_granted_by_every_etcd),
        TEST(test_a_user_signs_in_once),
        TEST(test_a_token_that_is_no_longer_taken_is_renewed_by_the_call_that_finds_out),
        TEST(test_a_wrong_password_is_told_with_the_user),
        TEST(test_an_etcd_without_authentication_takes_a_user_all_the_same),
        TEST(test_an_etcd_that_begins_to_ask_for_a_user_is_told_one),
        TEST(test_a_call_that_waits_for_a_token_ends_in_its_time),
        TEST(test_calls_that_wait_for_a_token_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
