/* Every call of a client as it is sent, and what becomes of each answer: to the last word, with the clock, HTTP and the asking for a
 * token played by this file. */
#include "agent/core/kv.h"
#include "agent/store/access.h"
#include "agent/store/gateway.h"
#include "agent/store/sign_in.h"
#include "agent/store/store.h"
#include "base/sys/clock.h"
#include "tests/agent/store/fake_http.h"

static int64_t virtual_ns, timer_ns; /* timer_ns 0: it was never set */
static loop_timer_fn *late_fn;
static void *late_arg;
static int timers; /* that are not given back */

/* Who waits: the timers of all calls, the newest last. */
static struct waiting {
    void *arg;
    bool open;
} waiting[FAKE_CALLS_MAX];
static int n_waiting;

static struct loop_source *fake_timer(const struct loop *l, loop_timer_fn *fn, void *arg) {
    assert_ptr_equal(l, &fake_loop);
    late_fn = fn;
    late_arg = arg;
    timers++;
    waiting[n_waiting] = (struct waiting){arg, true};
    return (struct loop_source *)(void *)&waiting[n_waiting++];
}

static struct loop_source *fake_timer_free(struct loop_source *s) {
    if (!s)
        return NULL;
    struct waiting *w = (struct waiting *)(void *)s;
    assert_true(w->open);
    w->open = false;
    timers--;
    return NULL;
}

/* Who asks for a token: begun, and cancelled. */
static char asked_url[128];
static int asked, asks_cancelled;

static void fake_ask(struct sign_in *s, const char *url) {
    static char call;
    if (s->call)
        return;
    asked++;
    s->call = (struct http_call *)(void *)&call;
    snprintf(asked_url, sizeof(asked_url), "%s", url);
}

#define clock_monotonic_ns()   virtual_ns
#define loop_timer(l, fn, arg) fake_timer(l, fn, arg)
#define loop_timer_at(s, at)   (assert_ptr_equal(s, &waiting[n_waiting - 1]), timer_ns = (at))
#define loop_source_free(s)    fake_timer_free(s)
#define sign_in_begin(s, url)  fake_ask(s, url)
#define sign_in_cancel(s)      ((void)(s), asks_cancelled++)
#include "agent/store/client.c"

/* ---- who asks ---- */

static struct store *store;
static struct store_access access_;
static int replies, news;
static struct store_reply last;
static bool last_had_txn;
static char last_why[300], told[512]; /* told: of events, "key=value@revision " each, or -key */
static bool ended;
static int64_t compact_revision;
static struct store_call *cancels; /* what a callback cancels */
static bool asks_again;            /* a callback asks once more */

static struct store_call *ask_key(const char *key, int64_t timeout_ms);

static void react(void) {
    struct store_call *c = cancels;
    cancels = NULL;
    store_cancel(c);
    if (asks_again) {
        asks_again = false;
        ask_key("again", 1000);
    }
}

static void on_reply_(void *arg, const struct store_reply *r) {
    assert_ptr_equal(arg, &replies);
    replies++;
    last = *r;
    last_had_txn = r->txn != NULL;
    snprintf(last_why, sizeof(last_why), "%s", r->why ? r->why : "(none)");
    react();
}

static void on_news_(void *arg, const struct store_news *n) {
    assert_ptr_equal(arg, &news);
    news++;
    ended = n->ended;
    assert_true(n->ended ? !n->n_events : n->n_events > 0 && !n->why && !n->compact_revision);
    for (size_t i = 0; i < n->n_events; i++) {
        const struct kv_event *e = &n->events[i];
        snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s%.*s=%.*s@%lld ",
                 e->deleted ? "-" : "", (int)e->pair.key.len, e->pair.key.data,
                 (int)e->pair.value.len, e->pair.value.data, (long long)e->pair.mod_revision);
    }
    if (n->ended) {
        compact_revision = n->compact_revision;
        snprintf(last_why, sizeof(last_why), "%s", n->why);
    }
    react();
}

static void open_at(const char *endpoints) {
    struct err err = {0};
    store = store_client_new((struct loop *)(void *)&fake_loop, endpoints, &access_, &err);
    assert_string_equal(err.msg, "");
    assert_non_null(store);
    assert_ptr_equal(fake_access, &access_);
}

static void begin(const char *endpoints) {
    fake_begin();
    virtual_ns = 5000000000;
    timer_ns = 0;
    timers = n_waiting = replies = news = asked = asks_cancelled = 0;
    cancels = NULL;
    asks_again = false;
    told[0] = '\0';
    open_at(endpoints);
}

/* What is left is cancelled, all of it, and all is given back once. */
static void finish(void) {
    int open = fake_open(), before = fake_cancelled, said = replies + news;
    assert_int_equal(fake_freed, 0);
    store = store_free(store);
    assert_int_equal(fake_cancelled - before, open);
    assert_int_equal(fake_freed, 1);
    assert_int_equal(asks_cancelled, 1);
    assert_int_equal(timers, 0);
    assert_int_equal(replies + news, said);
    access_ = (struct store_access){0};
}

static struct store_call *ask_key(const char *key, int64_t timeout_ms) {
    struct kv_op op = {.kind = KV_RANGE, .key = kv_string(key)};
    struct kv_txn txn = {.success = &op, .n_success = 1};
    struct store_call *c = store_txn(store, &txn, timeout_ms, on_reply_, &replies);
    assert_non_null(c);
    return c;
}

static struct store_call *watch_key(int64_t from, int64_t timeout_ms) {
    return store_watch(store, kv_string("a"), kv_string("b"), from, timeout_ms, on_news_, &news);
}

#define TXN(key) "{\"success\":[{\"request_range\":{\"key\":\"" key "\"}}]} (application/json)"
#define A        TXN("YQ==")
#define WATCH                                                                                      \
    "{\"create_request\":{\"key\":\"YQ==\",\"range_end\":\"Yg==\",\"start_revision\":\"7\"}} "     \
    "(application/json)"

static void test_each_call_is_written_as_etcd_reads_it(void **state) {
    (void)state;
    begin("h");
    assert_string_equal(store->ops->name, "etcd v3");
    assert_string_equal(fake_token, "(none)");
    ask_key("a", 1000);
    fake_said("POST http://h:2379/v3/kv/txn 1000 ms: " A);
    store_grant(store, 5, 60, 1001, on_reply_, &replies);
    fake_said("POST http://h:2379/v3/lease/grant 1001 ms: {\"ID\":\"5\",\"TTL\":\"60\"} "
              "(application/json)");
    store_keepalive(store, 6, 1002, on_reply_, &replies);
    fake_said("POST http://h:2379/v3/lease/keepalive 1002 ms: {\"ID\":\"6\"} (application/json)");
    watch_key(7, 1003);
    fake_said("POST http://h:2379/v3/watch streamed 1003 ms: " WATCH);
    for (int64_t ms = -1; ms <= 2; ms++) { /* no time at all would be for ever */
        char expected[200];
        ask_key("a", ms);
        snprintf(expected, sizeof(expected), "POST http://h:2379/v3/kv/txn %d ms: " A,
                 ms < 2 ? 1 : 2);
        fake_said(expected);
    }
    assert_int_equal(asked, 0);
    finish();
    access_ = (struct store_access){.https = true, .token = "shown"};
    begin("[fd00::1]:80");
    assert_string_equal(fake_token, "shown");
    ask_key("a", 1000);
    fake_said("POST https://[fd00::1]:80/v3/kv/txn 1000 ms: " A);
    finish();
}

static void test_endpoints_are_read_to_the_last(void **state) {
    (void)state;
    static const char sixteen[] = "a,b:1,c,d,e,f,g,h,i,j,k,l,m,n,o,p:16";
    char seventeen[64];
    struct err err = {0};
    begin(sixteen);
    for (int i = 0; i < 17; i++) {
        char expected[200];
        ask_key("a", 10);
        snprintf(expected, sizeof(expected), "POST http://%c:%d/v3/kv/txn 10 ms: " A, 'a' + i % 16,
                 i % 16 == 1    ? 1
                 : i % 16 == 15 ? 16
                                : 2379);
        fake_said(expected);
        fake_answer(fake_last(), 0, "", "away");
        assert_true(last.outcome == STORE_UNKNOWN && !last_had_txn);
        assert_string_equal(last_why, "away");
    }
    finish();
    fake_freed = 0;
    snprintf(seventeen, sizeof(seventeen), "%s,q", sixteen);
    assert_null(store_client_new((struct loop *)(void *)&fake_loop, seventeen, NULL, &err));
    assert_int_equal(err.code, -22);
    assert_string_equal(err.msg,
                        "'a,b:1,c,d,e,f,g,h,i,j,k,l,m,n,o,p:16,q': give at most 16 endpoints");
    assert_null(store_client_new((struct loop *)(void *)&fake_loop, "a,b:x,c", NULL, &err));
    assert_non_null(strstr(err.msg, "b:x"));
    fake_none = true;
    assert_null(store_client_new((struct loop *)(void *)&fake_loop, "a", NULL, &err));
    assert_string_equal(err.msg, "no way there");
    assert_int_equal(fake_freed, 0);
}

/* ---- answers ---- */

#define HEADER  "{\"header\":{\"revision\":\"9\"}"
#define UNKNOWN STORE_UNKNOWN, 0, 0, 0
#define REFUSED STORE_REFUSED, 0, 0, 0

/* Of a transaction, of a lease: what is told, and whether the next endpoint is taken for the next call. */
static const struct {
    long status;
    const char *text, *error;
    struct {
        enum store_outcome outcome;
        bool txn;
        int64_t lease, ttl_s;
        const char *why;
        bool moves;
    } of[2];
} answers[] = {
    {200,
     HEADER ",\"ID\":\"5\",\"TTL\":\"61\"}",
     NULL,
     {{STORE_ANSWERED, true, 0, 0, "(none)", false},
      {STORE_ANSWERED, false, 5, 61, "(none)", false}}},
    {200,
     "[]",
     NULL,
     {{UNKNOWN, "expected a JSON object", true}, {UNKNOWN, "expected a JSON object", true}}},
    {200,
     "{\"ID\":\"x\",\"header\":{\"revision\":\"x\"}}",
     NULL,
     {{UNKNOWN, "a number is not an integer", true},
      {UNKNOWN, "a number is not an integer", true}}},
    {0, "", "no answer", {{UNKNOWN, "no answer", true}, {UNKNOWN, "no answer", true}}},
    {400,
     "{\"error\":\"etcdserver: no\",\"code\":3}",
     NULL,
     {{REFUSED, "etcdserver: no", false}, {REFUSED, "etcdserver: no", false}}},
    {412,
     "{\"error\":\"etcdserver: lease already exists\",\"code\":9}",
     NULL,
     {{REFUSED, "etcdserver: lease already exists", false},
      {STORE_ANSWERED, false, 5, 60, "(none)", false}}},
    {503,
     "{\"error\":\"etcdserver: no leader\",\"code\":14}",
     NULL,
     {{UNKNOWN, "etcdserver: no leader", true}, {UNKNOWN, "etcdserver: no leader", true}}},
    {401,
     "{\"error\":\"who are you\",\"code\":16}",
     NULL,
     {{UNKNOWN, "who are you", true}, {UNKNOWN, "who are you", true}}},
    {404,
     "{\"error\":\"etcdserver: requested lease not found\",\"code\":5}",
     NULL,
     {{REFUSED, "etcdserver: requested lease not found", false},
      {REFUSED, "etcdserver: requested lease not found", false}}},
    {400,
     "hello",
     NULL,
     {{UNKNOWN,
       "HTTP status 400, hello: this is no answer of an etcd v3; does it want --rdzv-conf "
       "protocol=https?",
       true},
      {UNKNOWN,
       "HTTP status 400, hello: this is no answer of an etcd v3; does it want --rdzv-conf "
       "protocol=https?",
       true}}},
    {403,
     "{\"error\":\"etcdserver: permission denied\",\"code\":7}",
     NULL,
     {{UNKNOWN,
       "etcdserver: permission denied; the user of --rdzv-conf needs a role for the keys /rankrun/",
       true},
      {UNKNOWN,
       "etcdserver: permission denied; the user of --rdzv-conf needs a role for the keys /rankrun/",
       true}}},
};

static void answer_to(bool lease, size_t i) {
    begin("one,two");
    if (lease)
        store_grant(store, 5, 60, 1000, on_reply_, &replies);
    else
        ask_key("a", 1000);
    fake_answer(fake_last(), answers[i].status, answers[i].text, answers[i].error);
    assert_int_equal(replies, 1);
    assert_int_equal(last.outcome, answers[i].of[lease].outcome);
    assert_int_equal(last_had_txn, answers[i].of[lease].txn);
    assert_int_equal(last.lease, answers[i].of[lease].lease);
    assert_int_equal(last.ttl_s, answers[i].of[lease].ttl_s);
    assert_string_equal(last_why, answers[i].of[lease].why);
    assert_int_equal(fake_n, 1);
    ask_key("a", 1000);
    fake_said(answers[i].of[lease].moves ? "POST http://two:2379/v3/kv/txn 1000 ms: " A
                                         : "POST http://one:2379/v3/kv/txn 1000 ms: " A);
    finish();
}

static void test_each_answer_is_told_and_who_gave_none_is_left(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
        answer_to(false, i);
        answer_to(true, i);
    }
}

static void test_of_many_that_one_endpoint_loses_the_first_moves_on(void **state) {
    (void)state;
    begin("one,two,three");
    for (int i = 0; i < 3; i++)
        ask_key("a", 1000);
    for (int i = 0; i < 3; i++)
        fake_answer(&fake_calls[i], 0, "", "away");
    ask_key("a", 1000);
    fake_said("POST http://two:2379/v3/kv/txn 1000 ms: " A);
    fake_answer(fake_last(), 0, "", "away");
    ask_key("a", 1000);
    fake_said("POST http://three:2379/v3/kv/txn 1000 ms: " A);
    finish();
}

/* ---- an etcd 3.3 ---- */

static void next_is_at(const char *prefix) {
    char expected[200];
    ask_key("a", 1000);
    snprintf(expected, sizeof(expected), "POST http://h:2379%s/kv/txn 1000 ms: " A, prefix);
    fake_said(expected);
}

static void test_a_path_that_is_not_known_is_asked_for_once_more_elsewhere(void **state) {
    (void)state;
    begin("h");
    next_is_at("/v3");
    virtual_ns += 250999999;
    fake_answer(fake_last(), 404, "404 page not found\n", NULL);
    assert_int_equal(replies, 0);
    fake_said("POST http://h:2379/v3beta/kv/txn 749 ms: " A); /* in the time that is left */
    fake_answer(fake_last(), 200, HEADER "}", NULL);
    assert_true(replies == 1 && last.outcome == STORE_ANSWERED);
    next_is_at("/v3beta");
    /* It was replaced by a newer one. */
    fake_answer(fake_last(), 404, "404 page not found\n", NULL);
    fake_said("POST http://h:2379/v3/kv/txn 1000 ms: " A);
    fake_answer(fake_last(), 200, HEADER "}", NULL);
    assert_true(replies == 2 && last.outcome == STORE_ANSWERED);
    for (int i = 0; i < 2; i++) { /* and by something that is neither */
        next_is_at("/v3");
        fake_answer(fake_last(), 404, "404 page not found\n", NULL);
        fake_said("POST http://h:2379/v3beta/kv/txn 1000 ms: " A);
        fake_answer(fake_last(), 404, "404 page not found\n", NULL);
        assert_true(replies == 3 + i && last.outcome == STORE_UNKNOWN);
        assert_string_equal(last_why,
                            "HTTP status 404, 404 page not found: this is no answer of an etcd v3");
    }
    assert_int_equal(fake_n, 8);
    finish();
}

/* ---- watches ---- */

#define LINE(inside) "{\"result\":{\"header\":{\"revision\":\"9\"}" inside "}}\n"
#define EVENT(type, key, value, revision)                                                          \
    "{" type "\"kv\":{\"key\":\"" key "\",\"value\":\"" value "\",\"mod_revision\":\"" revision    \
    "\"}}"
#define LINES                                                                                      \
    LINE(",\"created\":true")                                                                      \
    LINE(",\"events\":[" EVENT("", "YQ==", "eA==", "8") "]")                                       \
    "\n" LINE(",\"events\":[" EVENT("\"type\":\"DELETE\",", "YQ==", "",                            \
                                    "9") "," EVENT("", "Yg==", "eQ==", "9") "]")

/* Of what is not a whole line yet nothing is told. */
static void test_lines_are_told_wherever_they_are_cut(void **state) {
    (void)state;
    static const char lines[] = LINES;
    for (size_t cut = 0; cut < sizeof(lines); cut++) {
        begin("h");
        watch_key(7, 1000);
        struct fake_call *c = fake_last();
        c->on_data(c->arg, lines, cut);
        int before = 0;
        for (size_t i = 0; i < cut; i++)
            before += lines[i] == '\n';
        assert_int_equal(news, before < 2 ? 0 : before < 4 ? 1 : 2);
        for (size_t i = cut; i < sizeof(lines) - 1; i++)
            c->on_data(c->arg, &lines[i], 1);
        assert_int_equal(news, 2);
        assert_false(ended);
        assert_string_equal(told, "a=x@8 -a=@9 b=y@9 ");
        fake_answer(c, 200, "", NULL);
        assert_true(news == 3 && ended && compact_revision == 0);
        assert_string_equal(last_why, "the store ended the watch");
        finish();
    }
}

static void stream_ends_with(const char *line, const char *why, int64_t compacted) {
    begin("one,two");
    watch_key(7, 1000);
    struct fake_call *c = fake_last();
    c->on_data(c->arg, line, strlen(line));
    assert_true(news == 1 && ended && !c->open && fake_cancelled == 1);
    assert_string_equal(last_why, why);
    assert_int_equal(compact_revision, compacted);
    watch_key(7, 1000); /* whoever said it has answered */
    fake_said("POST http://one:2379/v3/watch streamed 1000 ms: " WATCH);
    finish();
}

static void test_a_line_may_end_a_watch(void **state) {
    (void)state;
    static const char more[] = LINE(",\"events\":[" EVENT("", "YQ==", "eA==", "8") "]");
    char both[512];
    stream_ends_with(LINE(",\"canceled\":true,\"compact_revision\":\"12\""),
                     "the store canceled the watch", 12);
    stream_ends_with("{}\n", "a line of the watch has no result", 0);
    stream_ends_with("[]\n", "expected a JSON object", 0);
    snprintf(both, sizeof(both), "%s%s", LINE(",\"canceled\":true"), more);
    stream_ends_with(both, "the store canceled the watch", 0);
    assert_string_equal(told, "");
}

static void test_a_stream_that_is_lost_says_why_and_the_next_endpoint_is_taken(void **state) {
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        begin("one,two");
        watch_key(7, 1000);
        fake_answer(fake_last(), whole ? 200 : 0, "", "it was reset");
        assert_true(news == 1 && ended && fake_cancelled == 0);
        assert_string_equal(last_why, whole ? "the store ended the watch" : "it was reset");
        watch_key(7, 1000);
        fake_said("POST http://two:2379/v3/watch streamed 1000 ms: " WATCH);
        finish();
    }
}

/* From inside its own callback, in the middle of what has come; another call stays. */
static void test_a_watch_may_be_cancelled_by_what_it_tells(void **state) {
    (void)state;
    static const char lines[] = LINES;
    begin("h");
    ask_key("a", 1000);
    cancels = watch_key(7, 1000);
    watch_key(7, 1000);
    struct fake_call *c = &fake_calls[1];
    c->on_data(c->arg, lines, sizeof(lines) - 1);
    assert_int_equal(news, 1);
    assert_string_equal(told, "a=x@8 ");
    assert_true(fake_calls[0].open && !fake_calls[1].open && fake_calls[2].open);
    cancels = NULL;
    finish();
}

static void test_calls_may_be_made_and_cancelled_by_an_answer(void **state) {
    (void)state;
    begin("h");
    struct store_call *first = ask_key("a", 1000);
    ask_key("a", 1000);
    cancels = first;
    asks_again = true;
    fake_answer(&fake_calls[1], 200, HEADER "}", NULL);
    assert_true(replies == 1 && !fake_calls[0].open && fake_n == 3 && fake_calls[2].open);
    fake_said("POST http://h:2379/v3/kv/txn 1000 ms: " TXN("YWdhaW4="));
    finish();
}

/* ---- waiting for a token ---- */

static struct sign_in *signing(void) {
    return &client_of(store)->sign_in;
}

/* As sign_in.c does it. */
static void end_asking(enum sign_in_end how, const char *why) {
    struct sign_in *s = signing();
    assert_non_null(s->call);
    s->call = NULL;
    s->times += how == SIGNED_IN;
    s->stale = s->stale && how != SIGNED_IN;
    assert_ptr_equal(s->access, &access_);
    assert_non_null(s->http);
    s->fn(s->arg, how, why);
}

static void begin_as_user(const char *endpoints) {
    access_ = (struct store_access){.user = "me", .password = "p"};
    begin(endpoints);
}

static void test_calls_wait_for_a_token_and_go_in_their_order(void **state) {
    (void)state;
    begin_as_user("one,two");
    ask_key("a", 1000);
    assert_int_equal(timer_ns, virtual_ns + 1000000000);
    ask_key("b", 2000);
    assert_int_equal(timer_ns, virtual_ns + 2000000000);
    watch_key(7, 3000);
    struct store_call *away = ask_key("c", 1000);
    assert_true(asked == 1 && fake_n == 0 && timers == 4);
    assert_string_equal(asked_url, "http://one:2379/v3/auth/authenticate");
    store_cancel(away);
    assert_true(timers == 3 && fake_cancelled == 0);
    virtual_ns += 400000000;
    end_asking(SIGNED_IN, NULL);
    assert_true(fake_n == 3 && timers == 0 && replies == 0);
    assert_string_equal(fake_calls[0].said, "POST http://one:2379/v3/kv/txn 600 ms: " A);
    assert_string_equal(fake_calls[1].said, "POST http://one:2379/v3/kv/txn 1600 ms: " TXN("Yg=="));
    assert_string_equal(fake_calls[2].said,
                        "POST http://one:2379/v3/watch streamed 2600 ms: " WATCH);
    ask_key("a", 1000);
    assert_true(asked == 1 && fake_n == 4);
    finish();
}

static void test_without_a_token_all_that_wait_are_told_why(void **state) {
    (void)state;
    begin_as_user("one,two");
    ask_key("a", 1000);
    watch_key(7, 1000);
    asks_again = true; /* by the first callback: that waits for the next one */
    end_asking(SIGN_IN_FAILED, "wrong password");
    assert_true(replies == 1 && news == 1 && ended && fake_n == 0 && timers == 1);
    assert_true(last.outcome == STORE_UNKNOWN && !last_had_txn);
    assert_string_equal(last_why, "wrong password");
    assert_int_equal(asked, 2);
    assert_string_equal(asked_url, "http://two:2379/v3/auth/authenticate");
    end_asking(SIGN_IN_FAILED, "wrong password");
    assert_true(replies == 2 && timers == 0);
    ask_key("a", 1000);
    assert_string_equal(asked_url, "http://one:2379/v3/auth/authenticate");
    finish();
}

static void test_an_etcd_3_3_is_asked_for_a_token_at_its_own_path(void **state) {
    (void)state;
    begin_as_user("one,two");
    ask_key("a", 1000);
    end_asking(SIGN_IN_NO_SUCH_URL, "404");
    assert_string_equal(asked_url, "http://one:2379/v3beta/auth/authenticate");
    assert_true(asked == 2 && replies == 0 && timers == 1);
    end_asking(SIGN_IN_NO_SUCH_URL, "404 again"); /* it is neither */
    assert_true(asked == 2 && replies == 1 && timers == 0);
    assert_string_equal(last_why, "404 again");
    ask_key("a", 1000);
    assert_string_equal(asked_url, "http://two:2379/v3/auth/authenticate");
    end_asking(SIGN_IN_NO_SUCH_URL, "404");
    end_asking(SIGNED_IN, NULL);
    fake_said("POST http://two:2379/v3beta/kv/txn 1000 ms: " A);
    finish();
}

static void test_who_waits_too_long_is_told_what_for(void **state) {
    (void)state;
    static char sealed[TOKEN_MAX + 1];
    for (int user = 0; user < 2; user++) {
        access_ =
            user ? (struct store_access){.user = "me"} : (struct store_access){.sealed = &sealed};
        begin("one,two");
        ask_key("a", 1000);
        late_fn(late_arg, virtual_ns);
        assert_true(replies == 1 && last.outcome == STORE_UNKNOWN && timers == 0);
        assert_string_equal(last_why, user ? "the store has not taken our password in time"
                                           : "the store has not said in time whether it wants a "
                                             "token");
        watch_key(7, 1000);
        late_fn(late_arg, virtual_ns);
        assert_true(news == 1 && ended && fake_n == 0 && fake_cancelled == 0);
        finish();
    }
}

static const char invalid[] = "{\"error\":\"etcdserver: invalid auth token\",\"code\":16}";

/* Of many calls with an old token the first asks for a new one. */
static void test_a_token_that_is_taken_back_is_asked_for_once(void **state) {
    (void)state;
    begin_as_user("one,two");
    ask_key("a", 1000);
    end_asking(SIGNED_IN, NULL);
    ask_key("b", 1000);
    ask_key("c", 1000);
    fake_answer(&fake_calls[0], 401, invalid, NULL);
    assert_true(asked == 2 && signing()->stale && replies == 0 && timers == 1);
    fake_answer(&fake_calls[1], 401, invalid, NULL);
    assert_true(asked == 2 && timers == 2 && fake_n == 3);
    end_asking(SIGNED_IN, NULL);
    assert_true(fake_n == 5 && timers == 0);
    fake_answer(&fake_calls[2], 401, invalid, NULL); /* of the time before: there is a new one */
    assert_true(asked == 2 && !signing()->stale && fake_n == 6);
    fake_said("POST http://one:2379/v3/kv/txn 1000 ms: " TXN("Yw=="));
    fake_answer(fake_last(), 401, invalid, NULL); /* only once for each */
    assert_true(replies == 1 && asked == 2 && last.outcome == STORE_UNKNOWN);
    assert_string_equal(last_why, "etcdserver: invalid auth token; etcd took our token back");
    finish();
}

static void test_who_has_no_user_is_refused_at_once(void **state) {
    (void)state;
    begin("one,two");
    ask_key("a", 1000);
    fake_answer(fake_last(), 401, invalid, NULL);
    assert_true(replies == 1 && asked == 0 && fake_n == 1);
    finish();
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_call_is_written_as_etcd_reads_it),
        cmocka_unit_test(test_endpoints_are_read_to_the_last),
        cmocka_unit_test(test_each_answer_is_told_and_who_gave_none_is_left),
        cmocka_unit_test(test_of_many_that_one_endpoint_loses_the_first_moves_on),
        cmocka_unit_test(test_a_path_that_is_not_known_is_asked_for_once_more_elsewhere),
        cmocka_unit_test(test_lines_are_told_wherever_they_are_cut),
        cmocka_unit_test(test_a_line_may_end_a_watch),
        cmocka_unit_test(test_a_stream_that_is_lost_says_why_and_the_next_endpoint_is_taken),
        cmocka_unit_test(test_a_watch_may_be_cancelled_by_what_it_tells),
        cmocka_unit_test(test_calls_may_be_made_and_cancelled_by_an_answer),
        cmocka_unit_test(test_calls_wait_for_a_token_and_go_in_their_order),
        cmocka_unit_test(test_without_a_token_all_that_wait_are_told_why),
        cmocka_unit_test(test_an_etcd_3_3_is_asked_for_a_token_at_its_own_path),
        cmocka_unit_test(test_who_waits_too_long_is_told_what_for),
        cmocka_unit_test(test_a_token_that_is_taken_back_is_asked_for_once),
        cmocka_unit_test(test_who_has_no_user_is_refused_at_once),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
