/* What a store is made of, and told from outside: the limits of each size, each warning, each token, its timers, and its beginning
 * where a call fails. Some of what server.c calls is looked at on its way, or fails. */
#include "agent/store/server_state.h"

#include "agent/core/kv.h"
#include "agent/store/limits/crowd.h"
#include "agent/store/limits/flow.h"
#include "agent/store/limits/ledger.h"
#include "base/sys/clock.h"
#include "base/sys/line.h"
#include "base/sys/loop.h"
#include "base/sys/munge.h"
#include "base/sys/tcp.h"
#include "tests/agent/store/raw.h"
#include "tests/agent/store/traced.h"

#include <ctype.h>
#include <dirent.h>
#include <event2/http.h>
#include <errno.h>
#include <signal.h>

static bool no_munge, not_taken, is_here;
static struct ledger_limits of_ledger;
static size_t of_agents, of_others, of_crowd;
static char sealed_text[64];
static struct loop_source *timers[16]; /* that were set, with when; -1: off */
static int64_t timers_at[16];

static int fake_seal(const char *text, struct buf *ret, const struct err *err) {
    assert_null(err);
    snprintf(sealed_text, sizeof(sealed_text), "%s", text);
    if (no_munge)
        return -ENOENT;
    buf_puts(ret, "MUNGE:x:");
    return 0;
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

static void keep_ledger(struct ledger *l, const struct ledger_limits *limits) {
    of_ledger = *limits;
    ledger_set_limits(l, limits);
}

static void keep_flow(struct flow *f, size_t agents, size_t others) {
    of_agents = agents;
    of_others = others;
    flow_limit(f, agents, others);
}

static void keep_crowd(struct crowd *c, size_t most) {
    of_crowd = most;
    crowd_limit(c, most);
}

static void keep_timer(struct loop_source *s, int64_t at_ns) {
    int i = 0;
    while (timers[i] && timers[i] != s)
        i++;
    timers[i] = s;
    timers_at[i] = at_ns;
    if (at_ns < 0)
        loop_timer_off(s);
    else
        loop_timer_at(s, at_ns);
}

static void see_asked(struct crowd *c, struct evhttp_connection *connection, enum crowd_rank rank) {
    trace_note("rank %d", rank);
    crowd_asked(c, connection, rank);
}

static void see_whole(struct ledger *l, struct bufferevent *b) {
    trace_note("whole");
    ledger_whole(l, b);
}

static void see_trust(struct ledger *l, struct bufferevent *b) {
    trace_note("trust");
    ledger_trust(l, b);
}

static void see_hit(struct bounds *b, enum store_bound which, const char *who, int64_t now_ns) {
    assert_in_range(clock_monotonic_ns() - now_ns, 0, 1000000000000);
    trace_note("hit %s by %s", bounds_name(which), who ? who : "nobody");
    b->hits[which]++;
}

static int keep_listen(const char *host, uint16_t port, int backlog, int *fd, uint16_t *ret_port,
                       struct err *err) {
    trace_note("backlog %d", backlog);
    return tcp_listen(host, port, backlog, fd, ret_port, err);
}

static struct evhttp_bound_socket *keep_accept(struct evhttp *h, int fd) {
    return not_taken ? NULL : evhttp_accept_socket_with_handle(h, fd);
}

#define crowd_asked(c, connection, rank)   see_asked(c, connection, rank)
#define ledger_whole(l, b)                 see_whole(l, b)
#define ledger_trust(l, b)                 see_trust(l, b)
#define bounds_hit(b, which, who, now)     see_hit(b, which, who, now)
#define munge_seal(text, ret, err)         fake_seal(text, ret, err)
#define line_say(...)                      fake_say(__VA_ARGS__)
#define ledger_set_limits(l, limits)       keep_ledger(l, limits)
#define flow_limit(f, a, o)                keep_flow(f, a, o)
#define crowd_limit(c, n)                  keep_crowd(c, n)
#define crowd_default()                    ((size_t)321)
#define loop_timer_at(s, at)               keep_timer(s, at)
#define loop_timer_off(s)                  keep_timer(s, -1)
#define tcp_listen(h, p, b, fd, port, err) keep_listen(h, p, b, fd, port, err)
#define tcp_bound_silence(fd, s)           (trace_note("silence %d", s), tcp_bound_silence(fd, s))
#define tcp_is_loopback(fd)                ((void)(fd), is_here)
#define evhttp_set_timeout(h, s)           (trace_note("idle %d", s), evhttp_set_timeout(h, s))
#define evhttp_set_max_body_size(h, n)                                                             \
    (trace_note("body %d", (int)(n)), evhttp_set_max_body_size(h, n))
#define evhttp_set_max_headers_size(h, n)                                                          \
    (trace_note("headers %d", (int)(n)), evhttp_set_max_headers_size(h, n))
#define evhttp_accept_socket_with_handle(h, fd) keep_accept(h, fd)
#include "agent/store/server.c"
#undef loop_timer_at
#undef loop_timer_off

static struct loop *loop;
static struct kv *kv;
static struct server *server;
static struct err err;

static int begin(void **state) {
    (void)state;
    trace_begin("", 0);
    memset(timers, 0, sizeof(timers));
    no_munge = not_taken = false;
    is_here = true;
    err = (struct err){0};
    loop = loop_new(NULL);
    kv = kv_new(1, 0);
    server = server_new(loop, kv, "127.0.0.1", 0, &err);
    assert_non_null(server);
    return 0;
}

static int finish(void **state) {
    (void)state;
    server = server_free(server);
    assert_null(server);
    assert_null(server_free(NULL));
    kv_free(kv);
    loop_free(loop);
    return 0;
}

static int64_t timer_of(const struct loop_source *s) {
    int i = 0;
    while (timers[i] != s)
        assert_non_null(timers[i++]);
    return timers_at[i];
}

/* ---- limits ---- */

static void test_the_parts_of_a_size_add_up(void **state) {
    (void)state;
    for (size_t mb = 1; mb <= 4096; mb = mb * 3 + 1) {
        struct server_limits l = {0};
        size_t part = mb * 1024 * 1024 / 32;
        server_limits_of(&l, mb, 17);
        assert_int_equal(l.held_max, 5 * part);
        assert_int_equal(l.runs_max, 10 * part);
        assert_int_equal(l.others_max, 4 * part);
        assert_int_equal(l.history_max, 2 * part);
        assert_int_equal(l.request_ns, 30000000000);
        assert_int_equal(l.connections_max, 17);
    }
}

static void limits_are(size_t held, size_t runs, size_t others, size_t history, int64_t request_ns,
                       size_t connections) {
    assert_int_equal(of_ledger.held_max, held);
    assert_int_equal(of_ledger.request_ns, request_ns);
    assert_int_equal(of_agents, held / 2);
    assert_int_equal(of_others, held / 4);
    assert_int_equal(server->quota.limits.runs_max, runs);
    assert_int_equal(server->quota.limits.others_max, others);
    assert_int_equal(server->quota.limits.history_max, history);
    assert_int_equal(of_crowd, connections);
}

static void test_each_limit_goes_where_it_holds(void **state) {
    (void)state;
    enum { PART = 8 << 20 };
    limits_are(5 * PART, 10 * PART, 4 * PART, 2 * PART, 30000000000, 321);
    server_limit(server, &(struct server_limits){1000, 2001, 3002, 4003, 5004, 6});
    limits_are(1000, 2001, 3002, 4003, 5004, 6);
    server_limit(server, &(struct server_limits){1000, 2001, 3002, 4003, 5004, 0});
    limits_are(1000, 2001, 3002, 4003, 5004, 321);
    trace_is("backlog 4096\nsilence 20\nbody 2097152\nheaders 16384\nidle 300\n");
    assert_int_equal(server->bounds.port, server_port(server));
    assert_true(server_port(server) > 0);
}

/* ---- how it begins ---- */

static int count_files(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void test_one_that_cannot_begin_leaves_nothing(void **state) {
    (void)state;
    int files = count_files();
    static const char why[] = "libevent did not take the listening socket of 127.0.0.1:";
    assert_null(server_new(loop, kv, "127.0.0.1", server_port(server), &err));
    assert_int_equal(err.code, -EADDRINUSE);
    assert_int_equal(count_files(), files);
    not_taken = true;
    err = (struct err){0};
    assert_null(server_new(loop, kv, "127.0.0.1", 0, &err));
    assert_int_equal(err.code, -EIO);
    assert_memory_equal(err.msg, why, sizeof(why) - 1);
    assert_true(atoi(err.msg + sizeof(why) - 1) > 0);
    assert_int_equal(count_files(), files);
}

/* ---- what it tells who runs it ---- */

static void test_only_one_that_is_open_to_others_is_warned_of(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        char expected[400] = "";
        server->token = i & 1 ? "t" : NULL;
        server->tls_admits = i & 2;
        server->loopback = i & 4;
        buf_clear(&trace);
        server_warn(server);
        if (!i)
            snprintf(expected, sizeof(expected),
                     "warning store: store: without a token everybody who reaches port %u can read "
                     "and change its jobs; the variable RANKRUN_STORE_TOKEN, the same on all "
                     "nodes, sets one\n",
                     server_port(server));
        trace_is(expected);
    }
    for (int i = 0; i < 2; i++) { /* what its socket says */
        is_here = i;
        struct server *other = server_new(loop, kv, "127.0.0.1", 0, NULL);
        assert_int_equal(other->loopback, i);
        server_free(other);
    }
}

/* ---- a token of its own ---- */

static void test_a_token_is_drawn_where_it_can_be_told(void **state) {
    (void)state;
    char first[TOKEN_DRAWN];
    no_munge = true;
    server_draw_token(server);
    assert_null(server->token);
    no_munge = false;
    server_draw_token(server);
    assert_string_equal(server->token, sealed_text);
    assert_string_equal(buf_str(&server->sealed), "MUNGE:x:");
    strcpy(first, server->token);
    assert_int_equal(strlen(first), 32);
    for (const char *p = first; *p; p++)
        assert_true(isxdigit((unsigned char)*p) && !isupper((unsigned char)*p));
    buf_clear(&server->sealed);
    server_draw_token(server);
    assert_string_not_equal(server->token, first);
    assert_memory_not_equal(server->token, first, 16); /* neither half is always the same */
    assert_memory_not_equal(server->token + 16, first + 16, 16);
    assert_memory_not_equal(server->token, server->token + 16, 16);
}

/* headers "": those of a client of ours. */
static void ask_with(const char *headers, const char *path, const char *body,
                     const char *expected) {
    BUF_FINI struct buf request = {0};
    struct raw r;
    raw_put_request(&request, "POST", path, headers[0] ? headers : "Host: localhost\r\n", body);
    raw_ask(&r, loop, server_port(server), &request, NULL);
    if (!strstr(buf_str(&r.in), expected))
        fail_msg("%s %s: %s is not in %s", path, body, expected, buf_str(&r.in));
    raw_close(&r);
}

static void ask(const char *path, const char *body, const char *expected) {
    ask_with("", path, body, expected);
}

static void test_who_asks_is_told_what_was_sealed(void **state) {
    (void)state;
    ask("/v3/auth/authenticate", "{}", "{\"munge\":\"\"}");
    server_draw_token(server);
    ask("/v3/auth/authenticate", "{}", "{\"munge\":\"MUNGE:x:\"}");
    ask("/v3/kv/range", "{\"key\":\"eA==\"}", " 401 ");
}

/* ---- who is who ---- */

#define CUR   "L3JhbmtydW4vam9iL2N1cg==" /* /rankrun/job/cur */
#define LAST  "L3JhbmtydW4vam9iL3o="     /* /rankrun/job/z */
#define OWN   "{\"key\":\"" CUR "\",\"value\":\"e30=\"}"
#define GUEST "whole\nrank 1\n"
#define AGENT "rank 2\ntrust\n"
#define PAGE  "hit pages by 127.0.0.1\n"

/* Of each request, in its order: that it is whole, that it is a guest's, and at last that it is an agent's. */
static void test_each_request_makes_somebody_of_its_connection(void **state) {
    (void)state;
    static const struct {
        const char *path, *body, *headers, *said, *trace;
    } all[] = {
        {"/v3/kv/range", "{\"key\":\"eA==\"}", "", " 200 ", GUEST},
        {"/v3/kv/range", "{\"key\":\"" CUR "\"}", "", " 200 ", GUEST},
        {"/v3/kv/put", OWN, "", " 200 ", GUEST AGENT},
        {"/v3/kv/range", "{\"key\":\"" CUR "\"}", "", " 200 ", GUEST AGENT},
        {"/v3/kv/range", "{\"key\":\"" CUR "\",\"revision\":\"9\"}", "", " 400 ", GUEST},
        {"/v3/kv/range", "{", "", " 400 ", GUEST},
        {"/v3/lease/grant", "{\"ID\":\"7\",\"TTL\":\"60\"}", "", " 200 ", GUEST},
        {"/nowhere", "", "", " 404 ", GUEST},
        {"/metrics", "", "", " 405 ", GUEST},
        {"/v3/auth/authenticate", "{}", "", " 200 ", "whole\n"},
        {"/v3/auth/authenticate", "{}", "Origin: x\r\n", " 403 ", "whole\n" PAGE},
        {"/v3/kv/put", OWN, "Origin: x\r\n", " 403 ", "whole\n" PAGE},
        {"/v3/watch", "{}", "", " 400 ", GUEST},
        {"/v3/rankrun/lifeline", "{}", "", " 400 ", GUEST},
        {"/v3/kv/put", OWN, "Host: zq-evil.example.com\r\n", " 403 ", "whole\n" PAGE},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        buf_clear(&trace);
        ask_with(all[i].headers, all[i].path, all[i].body, all[i].said);
        trace_is(all[i].trace);
    }
    server_demand(server, "t");
    buf_clear(&trace);
    ask("/v3/kv/put", OWN, " 401 ");
    trace_is("whole\n");
}

static void watch_as(struct raw *r, const char *body, const char *until, const char *expected) {
    BUF_FINI struct buf request = {0};
    buf_printf(&request,
               "POST /v3/watch HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
               strlen(body), body);
    buf_clear(&trace);
    raw_ask(r, loop, server_port(server), &request, until);
    trace_is(expected);
}

static void test_a_watch_of_a_run_is_an_agents(void **state) {
    (void)state;
    struct raw before, own, other;
    static const char run[] =
        "{\"create_request\":{\"key\":\"" CUR "\",\"range_end\":\"" LAST "\"}}";
    watch_as(&before, run, "\"created\":true", GUEST);
    ask("/v3/kv/put", OWN, " 200 ");
    watch_as(&own, run, "\"created\":true", GUEST AGENT);
    watch_as(&other, "{\"create_request\":{\"key\":\"eA==\"}}", "\"created\":true", GUEST);
    raw_close(&before);
    raw_close(&own);
    raw_close(&other);
}

static void test_who_reads_slowly_and_what_is_certified_is_passed_on(void **state) {
    (void)state;
    buf_clear(&trace);
    on_slow(server, "10.0.0.1");
    trace_is("hit slow by 10.0.0.1\n");
    keep_timer(server->fan_out, -1);
    on_certified(server);
    assert_true(timer_of(server->fan_out) > 0);
    keep_timer(server->fan_out, -1);
    on_leases(server, 0);
    assert_true(timer_of(server->fan_out) > 0);
}

/* ---- its timers ---- */

/* After each request watchers are told, and the next lease that ends is waited for. */
static void test_after_each_request_it_is_known_what_is_due(void **state) {
    (void)state;
    static const struct {
        const char *path, *body, *said;
        int lease_s; /* when the next one ends; 0: none does */
    } all[] = {
        {"/v3/kv/put", "{\"key\":\"eA==\"}", " 200 ", 0},
        {"/v3/lease/grant", "{\"ID\":\"7\",\"TTL\":\"600\"}", "\"TTL\":\"600\"", 600},
        {"/v3/lease/grant", "{\"ID\":\"8\",\"TTL\":\"100\"}", "\"TTL\":\"100\"", 100},
        {"/v3/lease/revoke", "{\"ID\":\"8\"}", " 200 ", 600},
        {"/v3/lease/revoke", "{\"ID\":\"7\"}", " 200 ", 0},
        {"/v3/kv/put", "{", " 400 ", 0},
    };
    int64_t granted_ns = 0;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        int64_t from_ns = clock_monotonic_ns();
        ask(all[i].path, all[i].body, all[i].said);
        int64_t to_ns = clock_monotonic_ns(), due_ns = timer_of(server->leases);
        assert_in_range(timer_of(server->fan_out), from_ns, to_ns);
        if (!all[i].lease_s)
            assert_int_equal(due_ns, -1);
        else if (all[i].said[0] == '"')
            assert_in_range(due_ns - all[i].lease_s * 1000000000LL, from_ns, to_ns);
        else
            assert_int_equal(due_ns, granted_ns); /* that of the one that is left */
        granted_ns = all[i].lease_s == 600 ? due_ns : granted_ns;
    }
}

/* One that is due ends by itself, and watchers are told. */
static void test_a_lease_that_is_due_takes_its_keys_away(void **state) {
    (void)state;
    static const char watch[] = "{\"create_request\":{\"key\":\"eA==\"}}";
    BUF_FINI struct buf request = {0};
    struct arena a = {0};
    struct kv_txn_result result;
    struct raw r;
    int64_t id, now_ns = clock_monotonic_ns();
    struct kv_op op = {.kind = KV_PUT, .key = kv_string("x"), .lease = 7};
    buf_printf(&request,
               "POST /v3/watch HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
               strlen(watch), watch);
    raw_ask(&r, loop, server_port(server), &request, "\"created\":true");
    assert_int_equal(server_watches(server), 1);
    assert_int_equal(kv_lease_grant(kv, 7, 1, now_ns - 950000000, &id, NULL), 0);
    assert_int_equal(
        kv_txn(kv, &(struct kv_txn){.success = &op, .n_success = 1}, &a, &result, NULL), 0);
    server_changed(server);
    if (kv_count(kv)) /* nobody has kept us for so long */
        assert_int_equal(timer_of(server->leases), now_ns + 50000000);
    raw_await(&r, "\"type\":\"DELETE\"");
    assert_int_equal(kv_count(kv), 0);
    raw_close(&r);
    arena_fini(&a);
}

/* A watch that asks for the past is told it at once, though nothing is written. */
static void test_a_watch_of_the_past_is_told_it(void **state) {
    (void)state;
    static const char watch[] = "{\"create_request\":{\"key\":\"eA==\",\"start_revision\":\"1\"}}";
    BUF_FINI struct buf request = {0};
    struct raw r;
    ask("/v3/kv/put", "{\"key\":\"eA==\",\"value\":\"eQ==\"}", " 200 ");
    buf_printf(&request,
               "POST /v3/watch HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
               strlen(watch), watch);
    raw_ask(&r, loop, server_port(server), &request, "\"value\":\"eQ==\"");
    assert_int_equal(server->metrics.requests[9][0], 1);
    raw_close(&r);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        TEST(test_the_parts_of_a_size_add_up),
        TEST(test_each_limit_goes_where_it_holds),
        TEST(test_one_that_cannot_begin_leaves_nothing),
        TEST(test_only_one_that_is_open_to_others_is_warned_of),
        TEST(test_a_token_is_drawn_where_it_can_be_told),
        TEST(test_who_asks_is_told_what_was_sealed),
        TEST(test_each_request_makes_somebody_of_its_connection),
        TEST(test_a_watch_of_a_run_is_an_agents),
        TEST(test_who_reads_slowly_and_what_is_certified_is_passed_on),
        TEST(test_after_each_request_it_is_known_what_is_due),
        TEST(test_a_lease_that_is_due_takes_its_keys_away),
        TEST(test_a_watch_of_the_past_is_told_it),
    };
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
