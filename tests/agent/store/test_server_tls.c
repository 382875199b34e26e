/* The embedded store over TLS: the same contract, and handshakes that are no handshakes. */
#include "base/buf.h"
#include "base/http/http.h"
#include "tests/agent/store/contract_tests.h"
#include "tests/agent/store/serving.h"
#include "tests/agent/tls/certificates.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

enum { KB = 1 << 10, MB = 1 << 20 };

static struct store_access trusts = {.https = true};

static int set_up_with(void **state, const char *client_ca) {
    struct err err = {0};
    struct tls_files f = {.cert = certificate_path("both.pem"),
                          .client_ca = client_ca ? certificate_path(client_ca) : NULL};
    struct tls *t = tls_new(&f, &err);
    assert_string_equal(err.msg, "");
    trusts = (struct store_access){.https = true, .cacert = certificate_path("ca.pem")};
    serving_begin(state, &trusts);
    server_encrypt(server, t, client_ca);
    return 0;
}

static int set_up(void **state) {
    return set_up_with(state, NULL);
}

static int set_up_for_the_certified(void **state) {
    return set_up_with(state, "ca.pem");
}

/* ---- who is let in ---- */

static void asked_as(struct contract *c, const struct store_access *access,
                     enum store_outcome outcome, const char *why) {
    struct contract as;
    contract_begin(&as, c->loop, client_of_port(c->loop, server_port(server), access));
    contract_fresh(&as);
    struct kv_op op = {.kind = KV_RANGE, .key = key(&as, "a")};
    struct kv_txn txn = {.success = &op, .n_success = 1};
    ask(&as, &txn);
    assert_int_equal(as.reply.outcome, outcome);
    if (!strstr(as.why, why))
        fail_msg("expected '%s' in: %s", why, as.why);
    store_free(as.store);
    contract_end(&as);
}

static void test_who_does_not_trust_the_certificate_does_not_ask(void **state) {
    struct store_access other = {.https = true, .cacert = certificate_path("other.pem")};
    asked_as(*state, &trusts, STORE_ANSWERED, "");
    asked_as(*state, &other, STORE_UNKNOWN, "cacert= names the file of who signs");
}

static void test_who_speaks_no_tls_is_told_to(void **state) {
    asked_as(*state, NULL, STORE_UNKNOWN,
             "this store speaks TLS: https, --rdzv-conf protocol=https");
    asked_as(*state, &trusts, STORE_ANSWERED, "");
}

static void test_only_the_certified_are_answered_where_that_is_asked_for(void **state) {
    struct store_access ours = trusts, strange = trusts;
    ours.cert = certificate_path("both.pem");
    strange.cert = certificate_path("other.pem");
    strange.key = certificate_path("other.key");
    asked_as(*state, &ours, STORE_ANSWERED, "");
    asked_as(*state, &trusts, STORE_UNKNOWN, "it may want a certificate: --rdzv-conf cert=");
    asked_as(*state, &strange, STORE_UNKNOWN, "does the store accept the certificate");
    asked_as(*state, &ours, STORE_ANSWERED, "");
}

static void test_the_token_is_asked_for_as_without_tls(void **state) {
    struct store_access knows = trusts;
    knows.token = "s3cret";
    server_demand(server, "s3cret");
    asked_as(*state, &knows, STORE_ANSWERED, "");
    asked_as(*state, &trusts, STORE_UNKNOWN, "this store wants a token");
}

/* ---- what goes through ---- */

/* Many records in each direction, and more than a socket holds. */
static void test_a_long_value_comes_back_whole(void **state) {
    struct contract *c = *state;
    char *text = malloc(MB + 1);
    if (!text)
        abort();
    for (size_t i = 0; i < MB; i++)
        text[i] = (char)('a' + i % 23);
    text[MB] = '\0';
    put(c, "long", text);
    struct kv_compare same = {.target = KV_VALUE, .key = key(c, "long"), .value = {text, MB}};
    struct kv_txn txn = {.compares = &same, .n_compares = 1};
    ask(c, &txn);
    assert_true(c->succeeded);
    get(c, "long");
    assert_int_equal(c->count, 1);
    assert_memory_equal(c->value, text, sizeof(c->value) - 1);
    free(text);
}

static void test_a_server_that_goes_ends_its_watches(void **state) {
    struct contract *c = *state;
    watch_all(c, 1);
    put(c, "a", "1");
    await_events(c, 1);
    assert_int_equal(server_watches(server), 1);
    server = server_free(server);
    await_events(c, 2);
    assert_true(c->ended);
}

/* The client goes away in the middle of a watch, in order or not. */
static void test_a_watcher_that_vanished_is_forgotten(void **state) {
    struct contract *c = *state;
    watchers_vanish(c);
    assert_int_equal(server_held(server), 0);
}

static void on_answer(void *arg, long status, const struct buf *body, const char *error) {
    struct contract *c = arg;
    assert_string_equal(error, "");
    c->count = status;
    snprintf(c->why, sizeof(c->why), "%s", buf_str(body));
    loop_stop(c->loop);
}

/* The end of a connection is signed by nobody. */
static void test_no_lifeline_is_taken_over_tls(void **state) {
    struct contract *c = *state;
    struct buf url = {0}, body = {0};
    struct http *h = store_access_http(c->loop, &trusts, NULL);
    struct http_request r = {
        .method = "POST", .body = &body, .type = HTTP_JSON, .timeout_ms = CONTRACT_PATIENCE_MS};
    buf_printf(&url, "https://127.0.0.1:%u/v3/rankrun/lifeline", server_port(server));
    buf_puts(&body, "{}");
    r.url = buf_str(&url);
    http_send(h, &r, on_answer, c);
    contract_run(c);
    assert_int_equal(c->count, 400);
    assert_non_null(strstr(c->why, "lifeline: nobody signs"));
    assert_int_equal(server_lifelines(server), 0);
    http_free(h);
    buf_fini(&url);
    buf_fini(&body);
}

/* ---- handshakes that do not come ---- */

struct mute {
    struct loop *loop;
    struct loop_source *source, *pulse;
    int fd;
    size_t at;
    bool ended;
};

/* The beginning of a long ClientHello: a record of 512 bytes, in it a message of 508. */
static const unsigned char hello[] = {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3};

static void on_mute(void *arg, int fd, int what) {
    struct mute *m = arg;
    char bytes[256];
    (void)what;
    m->ended = recv(fd, bytes, sizeof(bytes), 0) <= 0;
    if (m->ended)
        m->source = loop_source_free(m->source);
    loop_stop(m->loop);
}

static void on_pulse(void *arg, int64_t now_ns) {
    struct mute *m = arg;
    unsigned char byte = m->at < sizeof(hello) ? hello[m->at] : 0;
    if (!m->ended && send(m->fd, &byte, 1, MSG_NOSIGNAL) == 1)
        m->at++;
    loop_timer_at(m->pulse, now_ns + 5000000);
}

static void mute_begin(struct mute *m, struct contract *c) {
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(server_port(server)),
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    *m = (struct mute){.loop = c->loop, .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_int_equal(connect(m->fd, (struct sockaddr *)&a, sizeof(a)), 0);
    m->source = loop_fd(c->loop, m->fd, LOOP_READ, on_mute, m);
}

static void mute_end(struct mute *m) {
    loop_source_free(m->source);
    loop_source_free(m->pulse);
    close(m->fd);
}

static void test_a_handshake_that_does_not_end_is_ended(void **state) {
    struct contract *c = *state;
    struct mute silent, slow;
    server_limit(server, &(struct server_limits){64 * MB, 64 * MB, 64 * MB, 64 * MB, 200000000, 0});
    mute_begin(&silent, c);
    mute_begin(&slow, c);
    slow.pulse = loop_timer(c->loop, on_pulse, &slow);
    loop_timer_at(slow.pulse, 0);
    while (!silent.ended || !slow.ended)
        contract_run(c);
    assert_true(slow.at > 2 && slow.at < 500);
    mute_end(&silent);
    mute_end(&slow);
    /* Who has got in and says nothing is left alone, and nothing is held for them. */
    put(c, "a", "1");
    assert_int_equal(server_held(server), 0);
}

static void test_there_are_only_so_many_handshakes_at_once(void **state) {
    enum { ALL = 24, MOST = 8 };
    struct contract *c = *state;
    struct mute many[ALL];
    size_t ended = 0;
    server_limit(
        server, &(struct server_limits){64 * MB, 64 * MB, 64 * MB, 64 * MB, 60000000000, 2 * MOST});
    for (size_t i = 0; i < ALL; i++)
        mute_begin(&many[i], c);
    while (ended < ALL - MOST) {
        contract_run(c);
        ended = 0;
        for (size_t i = 0; i < ALL; i++)
            ended += many[i].ended;
    }
    for (size_t i = 0; i < ALL; i++)
        mute_end(&many[i]);
    asked_as(c, &trusts, STORE_ANSWERED, "");
}

static void test_what_is_neither_http_nor_tls_harms_nobody(void **state) {
    static const char tcpstore[] = "\x00\x05\x00\x00\x00\x00\x00\x00\x00init/\r\n\r\n";
    struct contract *c = *state;
    struct mute m;
    mute_begin(&m, c);
    assert_int_equal(send(m.fd, tcpstore, sizeof(tcpstore), MSG_NOSIGNAL), sizeof(tcpstore));
    while (!m.ended)
        contract_run(c);
    mute_end(&m);
    put(c, "a", "1");
}

static void test_tls_is_not_here(void **state) {
    (void)state;
    skip();
}

#define ON(test) cmocka_unit_test_setup_teardown(test, set_up, serving_end)

int main(void) {
    const struct CMUnitTest tests[] = {
        CONTRACT_TESTS,
    };
    const struct CMUnitTest alone[] = {
        ON(test_who_does_not_trust_the_certificate_does_not_ask),
        ON(test_who_speaks_no_tls_is_told_to),
        cmocka_unit_test_setup_teardown(
            test_only_the_certified_are_answered_where_that_is_asked_for, set_up_for_the_certified,
            serving_end),
        ON(test_the_token_is_asked_for_as_without_tls),
        ON(test_a_long_value_comes_back_whole),
        ON(test_a_server_that_goes_ends_its_watches),
        ON(test_a_watcher_that_vanished_is_forgotten),
        ON(test_no_lifeline_is_taken_over_tls),
        ON(test_a_handshake_that_does_not_end_is_ended),
        ON(test_there_are_only_so_many_handshakes_at_once),
        ON(test_what_is_neither_http_nor_tls_harms_nobody),
    };
    const struct CMUnitTest none[] = {cmocka_unit_test(test_tls_is_not_here)};
    signal(SIGPIPE, SIG_IGN); /* as whoever serves a store does */
    if (!certificates_make())
        return cmocka_run_group_tests(none, NULL, NULL);
    int failed = cmocka_run_group_tests(tests, set_up, serving_end);
    failed += cmocka_run_group_tests(alone, NULL, NULL);
    certificates_end();
    return failed;
}
