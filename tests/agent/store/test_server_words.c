/* What an embedded store answers to each kind of request in each of its states, word for word and with what it counts: words.txt has
 * all of it. `make transcripts` writes the file anew; the diff is what a client is told differently. */
#include "agent/core/kv.h"
#include "agent/store/limits/bounds.h"
#include "agent/store/metrics.h"
#include "agent/store/server_state.h"
#include "base/sys/random.h"
#include "tests/agent/on_record.h"
#include "tests/agent/store/raw.h"

#include <signal.h>

static const char path[] = "tests/agent/store/words.txt";

static struct loop *loop;
static struct kv *kv;
static struct server *server;
static struct buf *out;

static void begin(void) {
    loop = loop_new(NULL);
    kv = kv_new(1, 0);
    server = server_new(loop, kv, "127.0.0.1", 0, NULL);
    assert_non_null(server);
    server->bounds.told_ns[BOUND_PAGES] = INT64_MAX / 2; /* nothing is said */
    server->bounds.told[BOUND_PAGES] = 1;
}

static void finish(void) {
    server_free(server);
    kv_free(kv);
    loop_free(loop);
}

/* Status and body; the rest is the same for all that are JSON. */
static void put_answer(const struct buf *in, size_t body_at) {
    const char *text = buf_str(in), *body = strstr(text, "\r\n\r\n");
    char length[64];
    assert_non_null(body);
    body += 4;
    buf_printf(out, "  %.*s", (int)strcspn(text + 9, "\r"), text + 9);
    if (strncmp(text + 9, "501", 3) == 0) { /* libevent's own */
        buf_putc(out, '\n');
        return;
    }
    snprintf(length, sizeof(length), "\r\nContent-Length: %zu\r\n", strlen(body));
    bool json = strstr(text, "\r\nContent-Type: application/json\r\n") != NULL;
    bool whole = strstr(text, "\r\nConnection: close\r\n") && strstr(text, length);
    buf_printf(out, "%s%s %.*s\n", json ? "" : ", no JSON", whole ? "" : ", in pieces",
               (int)strcspn(body + body_at, "\r\n"), body + body_at);
}

static void put_counted(const struct metrics *was) {
    static const char *const kinds[METRICS_KINDS] = {
        "other", "range",     "put",    "deleterange", "txn",      "compaction",
        "grant", "keepalive", "revoke", "watch",       "lifeline", "metrics"};
    static const int statuses[METRICS_STATUSES] = {200, 400, 401, 403, 404, 405, 412, 429, 0};
    const struct metrics *m = &server->metrics;
    buf_puts(out, "  ");
    for (int kind = 0; kind < METRICS_KINDS; kind++)
        for (int status = 0; status < METRICS_STATUSES; status++)
            for (uint64_t n = was->requests[kind][status]; n < m->requests[kind][status]; n++)
                buf_printf(out, "%s %d, ", kinds[kind], statuses[status]);
    buf_printf(out, "revision %d, %d agents, %d held, %d pages\n", (int)kv_revision(kv),
               (int)server_agents(server), (int)server_held(server),
               (int)server->bounds.hits[BOUND_PAGES]);
}

/* What is counted of the connection is compared at once. */
static void ask_as(const char *who, const char *method, const char *to, const char *headers,
                   const char *body) {
    BUF_FINI struct buf request = {0};
    struct raw r;
    struct metrics was = server->metrics;
    raw_put_request(&request, method, to, headers, body);
    buf_printf(out, "%s%s %s %s\n", who, method, to, body);
    raw_ask(&r, loop, server_port(server), &request, "\"created\":true}}\n\r\n");
    put_answer(&r.in, r.ended ? 0 : 4); /* behind the length of a piece */
    put_counted(&was);
    assert_int_equal(server->metrics.received - was.received, request.len);
    assert_int_equal(server->metrics.sent - was.sent, r.in.len);
    assert_int_equal(server->metrics.accepted - was.accepted, 1);
    raw_close(&r);
}

static void ask(const char *method, const char *to, const char *body) {
    ask_as("", method, to, "Host: localhost\r\n", body);
}

#define KEY "\"key\":\"eA==\""

static const char *const paths[] = {"/v3/kv/range",
                                    "/v3/kv/put",
                                    "/v3/kv/deleterange",
                                    "/v3/kv/txn",
                                    "/v3/kv/compaction",
                                    "/v3/lease/grant",
                                    "/v3/lease/keepalive",
                                    "/v3/lease/revoke",
                                    "/v3/kv/lease/revoke",
                                    "/v3/watch",
                                    "/v3/auth/authenticate",
                                    "/v3/rankrun/lifeline",
                                    "/v3/nowhere",
                                    "/v3/kv/range?x=1",
                                    "/"};

static void ask_all(void) {
    static const char *const bodies[] = {"", "[]", "{}", "{" KEY ",\"ID\":\"7\",\"TTL\":\"60\"}"};
    static const char *const methods[] = {"GET", "PUT", "DELETE", "HEAD"};
    begin();
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
        for (int k = 0; k < 8; k++)
            ask(k < 4 ? "POST" : methods[k - 4], paths[i], bodies[k < 4 ? k : 3]);
    ask("POST", "/v3/watch", "{\"create_request\":{" KEY "}}");
    ask("POST", "/metrics", "");
    finish();
}

/* Who has to show what: each header with each state of the store. */
static void ask_strangers(void) {
    static const struct header {
        const char *name, *text;
    } hosts[] = {{"ours", "Host: localhost\r\n"},
                 {"theirs", "Host: zq-evil.example.com\r\n"},
                 {"strange", "Host: a b\r\n"},
                 {"none", ""}},
      origins[] = {{"", ""}, {" of a page", "Origin: http://zq-evil.example.com\r\n"}},
      shown[] = {{"", ""},
                 {" with the token", "Authorization: Bearer s3cret\r\n"},
                 {" with another token", "Authorization: Bearer other\r\n"}};
    static const char *const states[] = {"open", "with a token", "with a name", "of the certified"};
    static const char *const asked[] = {"/v3/kv/range", "/v3/auth/authenticate", "/metrics",
                                        "/v3/watch", "/v3/rankrun/lifeline"};
    for (int state = 0; state < 4; state++) {
        begin();
        server_demand(server, state == 1 ? "s3cret" : NULL);
        server_allow(server, state == 2 ? "zq-evil.example.com" : NULL);
        server->tls_admits = state == 3;
        buf_printf(out, "# a store %s\n", states[state]);
        for (int i = 0; i < 5 * 4 * 2 * 3; i++) {
            char headers[256], who[128];
            int to = i / 24, host = i % 24 / 6, origin = i % 6 / 3;
            if (to && (host > 1 || (origin && i % 3)))
                continue; /* the first has shown it for all */
            snprintf(headers, sizeof(headers), "%s%s%s", hosts[host].text, origins[origin].text,
                     shown[i % 3].text);
            snprintf(who, sizeof(who), "host %s%s%s: ", hosts[host].name, origins[origin].name,
                     shown[i % 3].name);
            ask_as(who, to == 2 ? "PUT" : "POST", asked[to], headers, "{" KEY "}");
        }
        finish();
    }
}

/* Who asks about a run that is there is an agent. */
static void ask_nothing(void) {
    BUF_FINI struct buf nothing = {0};
    struct buf *was = out;
    out = &nothing;
    ask("GET", "/", "");
    out = was;
}

static void ask_as_agents(void) {
#define CUR    "L3JhbmtydW4vam9iL2N1cg==" /* /rankrun/job/cur */
#define RUN    "L3JhbmtydW4vam9iLw=="     /* /rankrun/job/ */
#define LAST   "L3JhbmtydW4vam9iL3o="     /* /rankrun/job/z */
#define BEHIND "L3JhbmtydW4vam9iMA=="     /* /rankrun/job0 */
    static const char *const all[][2] = {
        {"/v3/kv/range", "{\"key\":\"" CUR "\"}"},
        {"/v3/kv/put", "{\"key\":\"" CUR "\",\"value\":\"eA==\"}"},
        {"/v3/kv/range", "{\"key\":\"" CUR "\"}"},
        {"/v3/kv/range", "{" KEY "}"},
        {"/v3/kv/range", "{\"key\":\"" RUN "\",\"range_end\":\"" BEHIND "\"}"},
        {"/v3/kv/range", "{\"key\":\"" RUN "\",\"range_end\":\"" LAST "\"}"},
        {"/v3/kv/txn", "{\"success\":[{\"request_range\":{\"key\":\"" CUR "\"}}]}"},
        {"/v3/kv/range", "{\"key\":\"" CUR "\",\"revision\":\"99\"}"},
        {"/v3/watch", "{\"create_request\":{\"key\":\"" RUN "\",\"range_end\":\"" LAST "\"}}"},
        {"/v3/watch", "{\"create_request\":{" KEY "}}"},
        {"/v3/kv/deleterange", "{\"key\":\"" CUR "\"}"},
        {"/v3/kv/range", "{\"key\":\"" CUR "\"}"},
    };
    begin();
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        BUF_FINI struct buf request = {0};
        struct raw r;
        buf_printf(&request, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
                   all[i][0], strlen(all[i][1]), all[i][1]);
        raw_ask(&r, loop, server_port(server), &request, i == 8 || i == 9 ? "}}\n" : "}");
        buf_printf(out, "%s %s: %d agents\n", all[i][0], all[i][1], (int)server_agents(server));
        raw_close(&r);
        while (server_agents(server)) /* it is seen to go */
            ask_nothing();
    }
    finish();
}

static void say(struct buf *to) {
    out = to;
    signal(SIGPIPE, SIG_IGN);
    ask_all();
    ask_strangers();
    ask_as_agents();
}

static void test_each_answer_is_the_same_to_the_last_word(void **state) {
    (void)state;
    on_record_same(path, say, "the store says something else");
}

int main(int argc, char **argv) {
    const struct CMUnitTest test = cmocka_unit_test(test_each_answer_is_the_same_to_the_last_word);
    return on_record_main(argc, argv, path, say, &test);
}
