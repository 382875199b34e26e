/* The half of the agent that talks to the store: which request of a store each action becomes, to the last field; which event
 * each answer; where the store is looked for, and what is given back. Store, server and marker are doubles that write down how they
 * are called. */
#include "agent/agent_store.h"

#include "agent/core/kv.h"
#include "agent/options.h"
#include "agent/store/codec.h"
#include "agent/store/marker.h"
#include "agent/store/server.h"
#include "agent/store/store.h"
#include "agent/tls/tls.h"
#include "base/str.h"
#include "base/sys/line.h"
#include "base/sys/tcp.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct buf said;
static struct options o;
static struct err err;
static struct agent_store *s;
static const char *failing, *also_failing;
static int alive, marker_code;
static bool is_ours, is_hidden;
static char something[1];
static struct kv *local_kv;
static void (*written_fn)(void *arg);
static void *written_arg;

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&said, fmt, ap);
    va_end(ap);
    buf_putc(&said, '\n');
}

static void assert_said(const char *text) {
    assert_string_equal(buf_str(&said), text);
    buf_clear(&said);
}

/* ---- doubles ---- */

static void *made(const char *call, struct err *e) {
    if (str_eq(failing, call) || str_eq(also_failing, call))
        return err_say(e, -EIO, "no %s", call), NULL;
    alive++;
    return something;
}

static void *given_back(const char *what, const void *thing) {
    if (thing)
        say("%s ends", what);
    alive -= thing != NULL;
    return NULL;
}

void line_say(const char *level, const char *what, const char *fmt, ...) {
    BUF_FINI struct buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    say("%s, %s: %s", level, what, buf_str(&text));
}

bool tcp_host_is_ours(const char *host) {
    return host && is_ours;
}

bool tcp_name_is_hidden(const char *host) {
    return host && is_hidden;
}

struct server *server_new(struct loop *l, struct kv *kv, const char *host, uint16_t port,
                          struct err *e) {
    (void)l, (void)e;
    say("server at %s, %d%s", host, port, kv ? "" : " of nothing");
    BUF_FINI struct buf name = {0};
    buf_printf(&name, "server at %s", host);
    return made(buf_str(&name), NULL);
}

struct server *server_free(struct server *v) {
    return given_back("server", v);
}

void server_allow(struct server *v, const char *names) {
    say("server allows %s%s", names, v ? "" : ", and is none");
}

void server_demand(struct server *v, const char *token) {
    (void)v;
    say("server demands %s", token ? token : "nothing");
}

void server_draw_token(struct server *v) {
    (void)v;
    say("server draws a token");
}

void server_encrypt(struct server *v, struct tls *t, bool certified) {
    (void)v;
    say("server encrypts, certified %d%s", certified, t ? "" : ", with nothing");
    alive--; /* taken over */
}

void server_warn(const struct server *v) {
    (void)v;
    say("server warns");
}

void server_changed(struct server *v) {
    (void)v;
    say("server is told of changes");
}

struct tls *tls_new(const struct tls_files *files, struct err *e) {
    say("tls with %s", files->cert);
    return made("tls", e);
}

bool marker_open(struct marker *m, const char *host, uint16_t port, const char *quarantine,
                 struct kv *kv, struct err *e) {
    say("marker of %s, %d, quarantine %s%s", host, port, quarantine, kv ? "" : ", of nothing");
    str_copy(m->path, sizeof(m->path), "/marker");
    e->code = 0;
    if (marker_code)
        err_say(e, marker_code, "no place for a marker");
    return false;
}

void marker_close(struct marker *m, const struct kv *kv) {
    if (m->path[0])
        say("marker is closed%s", kv ? "" : ", of nothing");
}

/* ---- a store ---- */

static struct {
    store_reply_fn *reply;
    store_news_fn *news;
    void *arg;
} last;
static struct store_call calls[32];
static size_t n_calls;

static void put_bytes(struct buf *out, struct kv_bytes b) {
    buf_put(out, b.data ? b.data : "", b.len);
}

static void put_ops(struct buf *out, const char *name, const struct kv_op *ops, size_t n) {
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, " %s %d ", name, ops[i].kind);
        put_bytes(out, ops[i].key);
        if (ops[i].range_end.len)
            buf_puts(out, " to "), put_bytes(out, ops[i].range_end);
        if (ops[i].value.len)
            buf_puts(out, " = "), put_bytes(out, ops[i].value);
        if (ops[i].lease)
            buf_printf(out, " on %" PRId64, ops[i].lease);
    }
}

static struct store_call *call_of(struct store *st, store_reply_fn *fn, store_news_fn *news,
                                  void *arg) {
    last.reply = fn;
    last.news = news;
    last.arg = arg;
    calls[n_calls].store = st;
    return &calls[n_calls++];
}

static struct store_call *on_txn(struct store *st, const struct kv_txn *t, int64_t timeout_ms,
                                 store_reply_fn *fn, void *arg) {
    BUF_FINI struct buf text = {0};
    for (size_t i = 0; i < t->n_compares; i++) {
        buf_printf(&text, " if %d %d %" PRId64 " of ", t->compares[i].target,
                   t->compares[i].relation, t->compares[i].number);
        put_bytes(&text, t->compares[i].key);
    }
    put_ops(&text, "do", t->success, t->n_success);
    put_ops(&text, "else", t->failure, t->n_failure);
    say("txn within %" PRId64 ":%s", timeout_ms, buf_str(&text));
    return call_of(st, fn, NULL, arg);
}

static struct store_call *on_grant(struct store *st, int64_t lease, int64_t ttl_s,
                                   int64_t timeout_ms, store_reply_fn *fn, void *arg) {
    say("grant %" PRId64 " for %" PRId64 " s within %" PRId64, lease, ttl_s, timeout_ms);
    return call_of(st, fn, NULL, arg);
}

static struct store_call *on_keepalive(struct store *st, int64_t lease, int64_t timeout_ms,
                                       store_reply_fn *fn, void *arg) {
    say("keep %" PRId64 " alive within %" PRId64, lease, timeout_ms);
    return call_of(st, fn, NULL, arg);
}

static struct store_call *on_watch(struct store *st, struct kv_bytes key, struct kv_bytes end,
                                   int64_t from, int64_t timeout_ms, store_news_fn *fn, void *arg) {
    say("watch %zu: %.*s to %.*s from %" PRId64 " within %" PRId64, n_calls, (int)key.len, key.data,
        (int)end.len, end.data, from, timeout_ms);
    return call_of(st, NULL, fn, arg);
}

static void on_cancel(struct store_call *c) {
    say("%zu is cancelled", (size_t)(c - calls));
}

static void on_free(struct store *st) {
    given_back("store", st);
}

static const struct store_ops ops = {.txn = on_txn,
                                     .grant = on_grant,
                                     .keepalive = on_keepalive,
                                     .watch = on_watch,
                                     .cancel = on_cancel,
                                     .free = on_free};
static struct store store = {.ops = &ops};

struct store *store_local_new(struct loop *l, struct kv *kv, void (*written)(void *arg),
                              void *arg) {
    (void)l;
    say("a store in this process%s", kv ? "" : " of nothing");
    local_kv = kv;
    written_fn = written;
    written_arg = arg;
    return made("local", NULL) ? &store : NULL;
}

struct store *store_client_new(struct loop *l, const char *endpoints,
                               const struct store_access *access, struct err *e) {
    (void)l;
    say("a client of %s%s", endpoints, access == &o.rdzv.access ? "" : " as nobody");
    return made("client", e) ? &store : NULL;
}

/* ---- what the core hears ---- */

static void put_entry(struct buf *out, const struct entry *e) {
    buf_printf(out, " [%d %s deleted %d, %" PRId64 " %" PRId64 " %" PRId64, e->key.kind, e->key.uid,
               e->deleted, e->create_revision, e->mod_revision, e->version);
    if (e->value && e->key.kind == KEY_LEAD)
        buf_printf(out, " lead %s", e->value->lead.uid);
    buf_puts(out, e->value ? "]" : " no value]");
}

static void on_event(void *arg, const struct event *e) {
    BUF_FINI struct buf text = {0};
    assert_ptr_equal(arg, something);
    if (e->kind == EVENT_SNAPSHOT) {
        buf_printf(&text, "snapshot %" PRIu64 ": reached %d at %" PRId64, e->snapshot.id,
                   e->snapshot.reached, e->snapshot.revision);
        for (size_t i = 0; i < e->snapshot.n; i++)
            put_entry(&text, &e->snapshot.entries[i]);
    } else if (e->kind == EVENT_CHANGES) {
        buf_printf(&text, "changes of %d, generation %" PRIu64 ", to %" PRId64, e->changes.slot,
                   e->changes.generation, e->changes.revision);
        for (size_t i = 0; i < e->changes.n; i++)
            put_entry(&text, &e->changes.entries[i]);
    } else if (e->kind == EVENT_WATCH_LOST) {
        buf_printf(&text, "watch %d is lost, generation %" PRIu64, e->watch_lost.slot,
                   e->watch_lost.generation);
    } else if (e->kind == EVENT_DONE) {
        buf_printf(&text, "done %" PRIu64 ": reached %d, applied %d, at %" PRId64, e->done.id,
                   e->done.reached, e->done.applied, e->done.revision);
    } else if (e->kind == EVENT_BEAT) {
        buf_printf(&text, "beat %" PRId64 ": %d", e->beat.seq, e->beat.result);
    } else {
        buf_printf(&text, "event %d", e->kind);
    }
    say("%s", buf_str(&text));
}

/* ---- where it is ---- */

static int set_up(void **state) {
    (void)state;
    o = (struct options){.backend = BACKEND_ETCD_V3,
                         .run_id = "job",
                         .endpoints = "h:1,i:2",
                         .endpoint_host = "h",
                         .endpoint_port = 1,
                         .nodes_max = 2,
                         .rdzv = {.quarantine = "auto"}};
    err = (struct err){0};
    failing = also_failing = NULL;
    alive = marker_code = 0;
    n_calls = 0;
    is_ours = is_hidden = false;
    buf_clear(&said);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    buf_fini(&said);
    return 0;
}

static void open_store(void) {
    s = agent_store_new((struct loop *)something, &o, on_event, something, &err);
}

/* Opens it, compares what was asked for, and gives it back. */
static void assert_opened(const char *asked, const char *place, bool hosted) {
    open_store();
    assert_non_null(s);
    assert_said(asked);
    assert_string_equal(agent_store_place(s), place);
    assert_string_equal(agent_store_trouble(s), "");
    assert_int_equal(agent_store_is_hosted(s), hosted);
    written_fn = hosted || o.backend == BACKEND_IN_PROCESS ? written_fn : NULL;
    if (written_fn)
        written_fn(written_arg);
    assert_said(hosted ? "server is told of changes\n" : "");
    assert_null(agent_store_free(s));
    assert_said(hosted ? "store ends\nserver ends\nmarker is closed\n" : "store ends\n");
    assert_int_equal(alive, 0);
}

#define OPENS                                                                                      \
    "server allows h\nserver warns\nmarker of h, 1, quarantine auto\nserver is told of changes\n"

static void test_a_store_elsewhere_is_asked_by_a_client(void **state) {
    (void)state;
    assert_opened("a client of h:1,i:2\n", "the store at h:1,i:2", false);
    o.backend = BACKEND_EMBEDDED;
    assert_opened("a client of h:1,i:2\n", "the store at h:1,i:2", false);
    is_ours = true;
    o.rdzv.access.https = true; /* what speaks TLS there is not we */
    assert_opened("a client of h:1,i:2\n", "the store at h:1,i:2", false);
    o.backend = BACKEND_ETCD_V3;
    o.rdzv.access.https = false;
    assert_opened("a client of h:1,i:2\n", "the store at h:1,i:2", false);
}

static void test_alone_the_store_is_in_this_process(void **state) {
    (void)state;
    o.backend = BACKEND_IN_PROCESS;
    is_ours = is_hidden = true;
    assert_opened("a store in this process\n", "the store in this process", false);
}

static void test_the_host_of_the_endpoint_serves_it(void **state) {
    (void)state;
    o.backend = BACKEND_EMBEDDED;
    is_ours = true;
    assert_opened("server at h, 1\nserver demands nothing\n" OPENS "a store in this process\n",
                  "the store at h:1,i:2", true);
    static char sealed[1][TOKEN_MAX + 1];
    o.rdzv.access.token = "t";
    o.rdzv.access.sealed = sealed;
    marker_code = -EACCES;
    assert_opened("server at h, 1\nserver demands t\nserver draws a token\n" OPENS
                  "warning, store: no place for a marker\na store in this process\n",
                  "the store at h:1,i:2", true);
    o.rdzv.access = (struct store_access){.https = true};
    o.rdzv.tls = (struct tls_files){.cert = "/c", .client_ca = "/a"};
    marker_code = 0;
    assert_opened("server at h, 1\ntls with /c\nserver encrypts, certified 1\n"
                  "server demands nothing\n" OPENS "a store in this process\n",
                  "the store at h:1,i:2", true);
    o.rdzv.tls.client_ca = NULL;
    assert_opened("server at h, 1\ntls with /c\nserver encrypts, certified 0\n"
                  "server demands nothing\n" OPENS "a store in this process\n",
                  "the store at h:1,i:2", true);
}

static void test_where_somebody_serves_already_it_is_asked(void **state) {
    (void)state;
    o.backend = BACKEND_EMBEDDED;
    is_ours = true;
    failing = "server at h";
    assert_opened("server at h, 1\na client of h:1,i:2\n", "the store at h:1,i:2", false);
}

#define EVERYWHERE                                                                                 \
    "info, store: h is a loopback address on this host, which no other can reach: the store "      \
    "listens on all addresses\nserver demands nothing\n"

static void test_a_name_that_others_read_otherwise_is_served_everywhere(void **state) {
    (void)state;
    o.backend = BACKEND_EMBEDDED;
    is_ours = is_hidden = true;
    assert_opened("server at ::, 1\n" EVERYWHERE OPENS "a store in this process\n",
                  "the store at h:1,i:2", true);
    failing = "server at ::";
    assert_opened("server at ::, 1\nserver at 0.0.0.0, 1\n" EVERYWHERE OPENS
                  "a store in this process\n",
                  "the store at h:1,i:2", true);
    also_failing = "server at 0.0.0.0";
    assert_opened("server at ::, 1\nserver at 0.0.0.0, 1\na client of h:1,i:2\n",
                  "the store at h:1,i:2", false);
    failing = also_failing = NULL;
    o.nodes_max = 1; /* nobody else is to come */
    assert_opened("server at h, 1\nserver demands nothing\n" OPENS "a store in this process\n",
                  "the store at h:1,i:2", true);
}

static void test_what_cannot_be_had_is_said_and_nothing_is_left(void **state) {
    (void)state;
    failing = "client";
    open_store();
    assert_null(s);
    assert_string_equal(err.msg, "no client");
    assert_int_equal(alive, 0);
    o.backend = BACKEND_EMBEDDED;
    o.rdzv.tls.cert = "/c";
    is_ours = true;
    failing = "tls";
    buf_clear(&said);
    open_store();
    assert_null(s);
    assert_string_equal(err.msg, "no tls");
    assert_said("server at h, 1\ntls with /c\nserver ends\n");
    assert_int_equal(alive, 0);
    assert_null(agent_store_free(NULL));
}

/* ---- requests ---- */

#define KEY(of, who)                                                                               \
    { .kind = of, .inc = "0123456789abcdef", .uid = who }
#define INC "/rankrun/job/0123456789abcdef/"

static int open_client(void **state) {
    set_up(state);
    open_store();
    buf_clear(&said);
    return 0;
}

static int close_client(void **state) {
    agent_store_free(s);
    return tear_down(state);
}

static void answer(const struct kv_txn_result *t, int64_t ttl_s) {
    last.reply(last.arg, &(struct store_reply){
                             .outcome = STORE_ANSWERED, .txn = t, .ttl_s = ttl_s, .lease = 9});
}

static void fail_to(enum store_outcome outcome, const char *why) {
    last.reply(last.arg, &(struct store_reply){.outcome = outcome, .why = why});
}

static const struct kv_txn_result applied = {.succeeded = true, .revision = 40},
                                  refused = {.succeeded = false, .revision = 41};

static void ask_for(struct action act) {
    agent_store_do(s, &act, 70);
}

static void test_leases_are_granted_and_kept_alive(void **state) {
    (void)state;
    ask_for(
        (struct action){.kind = ACTION_LEASE_GRANT, .lease = {.id = 3, .lease = 5, .ttl_s = 6}});
    assert_said("grant 5 for 6 s within 70\n");
    answer(NULL, 6);
    assert_said("done 3: reached 1, applied 1, at 0\n");
    ask_for((struct action){.kind = ACTION_LEASE_KEEPALIVE, .lease = {.id = 4, .lease = 5}});
    assert_said("keep 5 alive within 70\n");
    answer(NULL, 0); /* there is none any more */
    assert_said("done 4: reached 1, applied 0, at 0\n");
    ask_for((struct action){.kind = ACTION_LEASE_KEEPALIVE, .lease = {.id = 5, .lease = 5}});
    answer(NULL, 1);
    assert_said("keep 5 alive within 70\ndone 5: reached 1, applied 1, at 0\n");
}

static void test_a_transaction_is_asked_for_whole(void **state) {
    static const union value lead = {.lead = {"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"}};
    static const struct compare compares[] = {
        {.key = KEY(KEY_LEAD, ""), .target = COMPARE_MOD, .relation = COMPARE_EQUAL, .number = 7}};
    static const struct op writes[] = {
        {.key = KEY(KEY_LEAD, ""), .put = true, .value = &lead},
        {.key = KEY(KEY_SESSION, "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb")}};
    const struct txn t = {
        .compares = compares, .n_compares = 1, .ops = writes, .n_ops = 2, .lease = 12};
    (void)state;
    ask_for((struct action){.kind = ACTION_TXN, .txn = {.id = 3, .txn = t}});
    assert_said("txn within 70: if 2 0 7 of " INC "lead do 1 " INC
                "lead = {\"uid\":\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\"} on 12 do 2 " INC
                "s/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n");
    answer(&applied, 0);
    assert_said("done 3: reached 1, applied 1, at 40\n");
    ask_for((struct action){.kind = ACTION_TXN, .txn = {.id = 4, .txn = t}});
    buf_clear(&said);
    answer(&refused, 0);
    assert_said("done 4: reached 1, applied 0, at 41\n");
    ask_for((struct action){.kind = ACTION_BEAT, .beat = {.seq = 8, .txn = t}});
    assert_non_null(strstr(buf_str(&said), "txn within 70: if 2 0 7"));
    buf_clear(&said);
    answer(&applied, 0);
    assert_said("beat 8: 0\n");
    ask_for((struct action){.kind = ACTION_BEAT, .beat = {.seq = 9, .txn = t}});
    buf_clear(&said);
    answer(&refused, 0);
    assert_said("beat 9: 1\n");
}

static void test_what_was_not_answered_is_told_and_why_is_kept(void **state) {
    (void)state;
    ask_for((struct action){.kind = ACTION_TXN, .txn = {.id = 3}});
    buf_clear(&said);
    fail_to(STORE_UNKNOWN, "connection refused");
    assert_said("done 3: reached 0, applied 0, at 0\n");
    assert_string_equal(agent_store_trouble(s), "connection refused");
    ask_for((struct action){.kind = ACTION_LEASE_KEEPALIVE, .lease = {.id = 4}});
    buf_clear(&said);
    fail_to(STORE_REFUSED, NULL);
    assert_said("done 4: reached 0, applied 0, at 0\n");
    assert_string_equal(agent_store_trouble(s), "no answer");
    ask_for((struct action){.kind = ACTION_TXN, .txn = {.id = 5}});
    buf_clear(&said);
    answer(&applied, 0);
    assert_string_equal(agent_store_trouble(s), "no answer"); /* the last there was */
}

static char values[4][128];

static struct kv_pair pair(int i, const char *key, const char *value) {
    snprintf(values[i], sizeof(values[i]), "%s", key);
    return (struct kv_pair){.key = kv_string(values[i]),
                            .value = kv_string(value),
                            .create_revision = 2,
                            .mod_revision = 20 + i,
                            .version = 4};
}

#define LEAD_OF_B "{\"uid\":\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\"}"

static void test_a_snapshot_is_read_and_what_is_none_of_ours_left_out(void **state) {
    (void)state;
    struct action act = {
        .kind = ACTION_SNAPSHOT,
        .snapshot = {.id = 6, .keys = {{.kind = KEY_CUR}, KEY(KEY_LEAD, "")}, .n = 2}};
    ask_for(act);
    assert_said("txn within 70: do 0 /rankrun/job/cur do 0 " INC "lead\n");
    struct kv_pair found[] = {pair(0, INC "lead", LEAD_OF_B), pair(1, "/rankrun/job2/cur", "{}"),
                              pair(2, INC "lead", "nonsense"), pair(3, INC "head", "{}!")};
    struct kv_op_result results[] = {{.kind = KV_RANGE},
                                     {.kind = KV_RANGE, .pairs = found, .n_pairs = 4}};
    struct kv_txn_result t = {
        .succeeded = true, .revision = 44, .results = results, .n_results = 2};
    answer(&t, 0);
    const char *text = buf_str(&said);
    assert_true(str_starts(text, "warning, store: the store at h:1,i:2: the value of key " INC
                                 "lead is not read: "));
    assert_null(strstr(text + 1, "warning")); /* once */
    assert_true(str_ends(text, "\nsnapshot 6: reached 1 at 44 [4  deleted 0, 2 20 4 lead "
                               "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb]\n"));
    buf_clear(&said);
    ask_for(act);
    buf_clear(&said);
    fail_to(STORE_UNKNOWN, "cut");
    assert_said("snapshot 6: reached 0 at 0\n");
}

/* ---- watches ---- */

static void watch(enum watch_slot slot, uint64_t generation, int64_t from) {
    ask_for((struct action){.kind = ACTION_WATCH,
                            .watch = {.slot = slot,
                                      .generation = generation,
                                      .key = KEY(slot == WATCH_HEAD ? KEY_HEAD : KEY_LEAD, ""),
                                      .from_revision = from}});
}

static void test_a_watch_tells_changes_and_goes_on_behind_them(void **state) {
    (void)state;
    watch(WATCH_LEAD, 3, 10);
    assert_said("watch 0: " INC "lead to  from 10 within 70\n");
    const struct kv_event events[] = {{.pair = pair(0, INC "lead", LEAD_OF_B)},
                                      {.deleted = true, .pair = pair(1, INC "lead", "")},
                                      {.pair = pair(2, "/elsewhere", "")}};
    last.news(last.arg, &(struct store_news){.events = events, .n_events = 3});
    assert_said("changes of 1, generation 3, to 22 [4  deleted 0, 2 20 4 lead "
                "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb] [4  deleted 1, 2 21 4 no value]\n");
    watch(WATCH_HEAD, 4, 11);
    assert_said("watch 1: " INC "head to  from 11 within 70\n");
    watch(WATCH_LEAD, 5, 12); /* in place of the one before */
    assert_said("0 is cancelled\nwatch 2: " INC "lead to  from 12 within 70\n");
    ask_for((struct action){.kind = ACTION_UNWATCH, .watch = {.slot = WATCH_HEAD}});
    assert_said("1 is cancelled\n");
    ask_for((struct action){.kind = ACTION_UNWATCH, .watch = {.slot = WATCH_HEAD}});
    assert_said(""); /* is over */
}

static void test_a_watch_that_ends_is_lost_and_why_is_kept(void **state) {
    (void)state;
    watch(WATCH_LEAD, 3, 10);
    buf_clear(&said);
    last.news(last.arg, &(struct store_news){.ended = true, .why = "compacted"});
    assert_said("watch 1 is lost, generation 3\n");
    assert_string_equal(agent_store_trouble(s), "compacted");
    watch(WATCH_LEAD, 4, 10);
    assert_said("watch 1: " INC "lead to  from 10 within 70\n"); /* nothing to cancel */
    last.news(last.arg, &(struct store_news){.ended = true});
    assert_string_equal(agent_store_trouble(s), "");
}

static void beat(bool answered) {
    ask_for((struct action){.kind = ACTION_BEAT, .beat = {.seq = 1}});
    buf_clear(&said);
    if (answered)
        answer(&applied, 0);
    else
        fail_to(STORE_UNKNOWN, "cut");
}

static void test_watches_are_made_anew_when_beats_are_answered_again(void **state) {
    (void)state;
    watch(WATCH_HEAD, 3, 10);
    watch(WATCH_LEAD, 4, 11);
    watch(WATCH_HOLDER, 5, 12);
    const struct kv_event event = {.pair = pair(0, INC "lead", LEAD_OF_B)};
    last.news(last.arg, &(struct store_news){.events = &event, .n_events = 1});
    ask_for((struct action){.kind = ACTION_UNWATCH, .watch = {.slot = WATCH_LEAD}});
    beat(true);
    assert_said("beat 1: 0\n");
    beat(false);
    assert_said("beat 1: 2\n");
    beat(false);
    assert_said("beat 1: 2\n");
    size_t first = n_calls + 1;
    BUF_FINI struct buf anew = {0};
    buf_printf(&anew,
               "0 is cancelled\nwatch %zu: " INC "head to  from 10 within 5000\n"
               "2 is cancelled\nwatch %zu: " INC "lead to  from 21 within 5000\nbeat 1: 0\n",
               first, first + 1);
    beat(true);
    assert_said(buf_str(&anew));
    beat(true);
    assert_said("beat 1: 0\n"); /* once */
}

/* ---- what is kept ---- */

static void test_what_is_under_way_at_the_end_is_given_back(void **state) {
    (void)state;
    ask_for((struct action){.kind = ACTION_TXN, .txn = {.id = 3}});
    ask_for((struct action){.kind = ACTION_LEASE_KEEPALIVE, .lease = {.id = 4}});
    watch(WATCH_ALL, 1, 1);
}

static void see_event(void *arg, const struct kv_event *e) {
    (void)e;
    ++*(size_t *)arg;
}

static size_t history_of(struct kv *kv, int writes) {
    size_t n = 0;
    for (int i = 0; i < writes; i++) {
        ARENA_FINI struct arena arena = {0};
        struct kv_op put = {.kind = KV_PUT, .key = kv_string("/k"), .value = kv_string("v")};
        struct kv_txn_result r;
        kv_txn(kv, &(struct kv_txn){.success = &put, .n_success = 1}, &arena, &r, NULL);
    }
    kv_each_event(kv, kv_compact_revision(kv), see_event, &n);
    return n;
}

/* Alone a store keeps little of what was; one that others ask, much. */
static void test_a_store_for_one_agent_keeps_little_of_what_was(void **state) {
    (void)state;
    set_up(state);
    o.backend = BACKEND_IN_PROCESS;
    open_store();
    assert_in_range(history_of(local_kv, 2000), 128, 512);
    agent_store_free(s);
    o.backend = BACKEND_EMBEDDED;
    is_ours = true;
    open_store();
    assert_true(history_of(local_kv, 2000) >= 2000);
    agent_store_free(s);
}

#define WHERE(name)   cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define REQUEST(name) cmocka_unit_test_setup_teardown(name, open_client, close_client)

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        WHERE(test_a_store_elsewhere_is_asked_by_a_client),
        WHERE(test_alone_the_store_is_in_this_process),
        WHERE(test_the_host_of_the_endpoint_serves_it),
        WHERE(test_where_somebody_serves_already_it_is_asked),
        WHERE(test_a_name_that_others_read_otherwise_is_served_everywhere),
        WHERE(test_what_cannot_be_had_is_said_and_nothing_is_left),
        REQUEST(test_leases_are_granted_and_kept_alive),
        REQUEST(test_a_transaction_is_asked_for_whole),
        REQUEST(test_what_was_not_answered_is_told_and_why_is_kept),
        REQUEST(test_a_snapshot_is_read_and_what_is_none_of_ours_left_out),
        REQUEST(test_a_watch_tells_changes_and_goes_on_behind_them),
        REQUEST(test_a_watch_that_ends_is_lost_and_why_is_kept),
        REQUEST(test_watches_are_made_anew_when_beats_are_answered_again),
        REQUEST(test_what_is_under_way_at_the_end_is_given_back),
        WHERE(test_a_store_for_one_agent_keeps_little_of_what_was),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
