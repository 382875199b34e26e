/* How `rankrun status` asks a store, listens for beats, and ends; and how it asks an etcd's v2 tree. Loop, clock, store and tree are
 * doubles that write down how they are called. */
#include "agent/status.h"

#include "agent/job_status.h"
#include "agent/options.h"
#include "agent/store/codec.h"
#include "agent/store/store.h"
#include "agent/store/tree_client.h"
#include "base/base64.h"
#include "base/rand.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/line.h"
#include "tests/agent/captured.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "tests/agent/on_record.h"

enum { HB_MS = 250, READ_AT = 5000, PAIRS = 16 };

static struct buf said, on_out, on_err;
static struct options o;
static struct arena arena;
static const char *failing;
static int alive, loop_rc;
static int64_t now_ns;
static void (*scene)(void);
static loop_timer_fn *timer_fn;
static store_reply_fn *reply_fn;
static store_news_fn *news_fn;
static tree_answer_fn *tree_fn;
static void *timer_arg, *reply_arg, *news_arg, *tree_arg;
static char something[1];

/* ---- doubles ---- */

static void *made(const char *call, struct err *err) {
    if (str_eq(failing, call))
        return err_say(err, -EIO, "no %s", call), NULL;
    alive++;
    return something;
}

static void *given_back(const void *thing) {
    alive -= thing != NULL;
    return NULL;
}

struct loop *loop_new(struct err *err) {
    return made("loop", err);
}

struct loop *loop_free(struct loop *l) {
    return given_back(l);
}

int loop_run(struct loop *l, struct err *err) {
    (void)l;
    buf_puts(&said, "runs\n");
    if (scene)
        scene();
    return loop_rc < 0 ? err_say(err, loop_rc, "the loop broke") : 0;
}

void loop_stop(struct loop *l) {
    (void)l;
    buf_puts(&said, "stops\n");
}

struct loop_source *loop_timer(struct loop *l, loop_timer_fn *fn, void *arg) {
    (void)l;
    timer_fn = fn;
    timer_arg = arg;
    return made("timer", NULL);
}

void loop_timer_at(struct loop_source *s, int64_t deadline_ns) {
    (void)s;
    buf_printf(&said, "timer at %" PRId64 " ns\n", deadline_ns);
}

struct loop_source *loop_source_free(struct loop_source *s) {
    return given_back(s);
}

int64_t clock_monotonic_ns(void) {
    return now_ns;
}

int64_t clock_realtime_ns(void) {
    return 0;
}

int64_t clock_boottime_ns(void) {
    return 0;
}

int64_t clock_cpu_ns(void) {
    return 0;
}

void line_say(const char *level, const char *what, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "%s, %s: ", level, what);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

static struct store_call *ask_txn(struct store *s, const struct kv_txn *t, int64_t timeout_ms,
                                  store_reply_fn *fn, void *arg) {
    (void)s;
    const struct kv_op *op = t->success;
    buf_printf(&said, "asks %zu of kind %d: %.*s to %.*s within %" PRId64 " ms\n", t->n_success,
               op->kind, (int)op->key.len, op->key.data, (int)op->range_end.len, op->range_end.data,
               timeout_ms);
    if (op->limit || op->keys_only || op->count_only || t->n_compares || t->n_failure)
        buf_puts(&said, "and more than that\n");
    reply_fn = fn;
    reply_arg = arg;
    return NULL;
}

static struct store_call *ask_watch(struct store *s, struct kv_bytes key, struct kv_bytes end,
                                    int64_t from, int64_t timeout_ms, store_news_fn *fn,
                                    void *arg) {
    (void)s;
    buf_printf(&said, "watches %.*s to %.*s from %" PRId64 " within %" PRId64 " ms\n", (int)key.len,
               key.data, (int)end.len, end.data, from, timeout_ms);
    news_fn = fn;
    news_arg = arg;
    return NULL;
}

static void free_store(struct store *s) {
    given_back(s);
}

static const struct store_ops ops = {.txn = ask_txn, .watch = ask_watch, .free = free_store};
static struct store store = {.ops = &ops};

struct store *store_client_new(struct loop *l, const char *endpoints,
                               const struct store_access *access, struct err *err) {
    (void)l;
    buf_printf(&said, "store at %s%s\n", endpoints, access == &o.rdzv.access ? "" : " as nobody");
    return made("store", err) ? &store : NULL;
}

struct tree_client *tree_client_new(struct loop *l, const char *endpoint,
                                    const struct store_access *access, tree_answer_fn *fn,
                                    void *arg, struct err *err) {
    (void)l;
    buf_printf(&said, "tree at %s%s\n", endpoint, access == &o.rdzv.access ? "" : " as nobody");
    tree_fn = fn;
    tree_arg = arg;
    return made("tree", err);
}

struct tree_client *tree_client_free(struct tree_client *c) {
    return given_back(c);
}

void tree_client_send(struct tree_client *c, uint64_t id, const struct tree_request *q) {
    (void)c, (void)id;
    buf_printf(&said, "asks %d of %s within %" PRId64 " ms\n", q->verb, q->key, q->timeout_ms);
}

void tree_client_cancel(struct tree_client *c, uint64_t id) {
    (void)c, (void)id;
}

const char *tree_client_trouble(const struct tree_client *c) {
    (void)c;
    return "";
}

/* ---- a job ---- */

static const char inc[] = "0123456789abcdef";
static const char a[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                  b[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
                  c[] = "cccccccccccccccccccccccccccccccc";
static struct kv_pair pairs[PAIRS];
static size_t n_pairs;

static struct kv_bytes key_of(const char *run, enum key_kind kind, const char *uid) {
    struct store_key key = {.kind = kind};
    char text[KEY_SIZE], end[KEY_SIZE];
    str_copy(key.inc, sizeof(key.inc), inc);
    str_copy(key.uid, sizeof(key.uid), uid);
    str_copy(key.pid, sizeof(key.pid), "2-7-1");
    key_format(&key, run, text, end);
    return kv_string(arena_strdup(&arena, text));
}

static void put(enum key_kind kind, const char *uid, const union value *v) {
    BUF_FINI struct buf value = {0};
    codec_put(&value, kind, v);
    pairs[n_pairs++] = (struct kv_pair){.key = key_of("job", kind, uid),
                                        .value = kv_string(arena_strdup(&arena, buf_str(&value)))};
}

static void make_job(enum head_phase phase, bool with_sessions) {
    union value v = {
        .cur = {
            .inc = "0123456789abcdef", .min = 1, .max = 2, .timing = {.hb_ns = HB_MS * 1000000LL}}};
    n_pairs = 0;
    put(KEY_CUR, "", &v);
    v = (union value){.head = {.round = 2, .phase = phase, .pid = "2-7-1", .n = 2, .world = 2}};
    put(KEY_HEAD, "", &v);
    for (int i = 0; i < 2; i++) {
        v = (union value){.plan = {.group_rank = i, .rank_base = i, .world = 2}};
        put(KEY_PLAN, i ? b : a, &v);
        v = (union value){.session = {1}};
        if (with_sessions)
            put(KEY_SESSION, i ? b : a, &v);
    }
}

static void answer(void) {
    struct kv_op_result r = {.kind = KV_RANGE, .pairs = pairs, .n_pairs = n_pairs};
    struct kv_txn_result t = {.succeeded = true, .revision = 40, .results = &r, .n_results = 1};
    now_ns = READ_AT;
    reply_fn(reply_arg, &(struct store_reply){.outcome = STORE_ANSWERED, .txn = &t});
}

static void refuse(enum store_outcome outcome, const char *why) {
    reply_fn(reply_arg, &(struct store_reply){.outcome = outcome, .why = why});
}

/* A session is written again, or gone, so long after the read. */
static void hear(const char *run, const char *uid, bool deleted, int64_t after_ms) {
    const struct kv_event e = {.deleted = deleted, .pair = {.key = key_of(run, KEY_SESSION, uid)}};
    now_ns = READ_AT + after_ms * 1000000;
    news_fn(news_arg, &(struct store_news){.events = &e, .n_events = 1});
}

/* ---- asking ---- */

static int ask(void (*play)(void)) {
    struct captured to_out, to_err;
    scene = play;
    buf_clear(&said);
    buf_clear(&on_out);
    buf_clear(&on_err);
    captured_begin(&to_out, stdout);
    captured_begin(&to_err, stderr);
    int code = status_run(&o);
    captured_end(&to_err, &on_err);
    captured_end(&to_out, &on_out);
    return code;
}

#define ASKS "store at h:1\nasks 1 of kind 0: /rankrun/job/ to /rankrun/job0 within 5000 ms\nruns\n"
#define WATCHES                                                                                    \
    "watches /rankrun/job/0123456789abcdef/s/ to /rankrun/job/0123456789abcdef/s0 from 41 within " \
    "5000 ms\ntimer at 500005000 ns\n"

static int set_up(void **state) {
    (void)state;
    o = (struct options){.backend = BACKEND_EMBEDDED, .run_id = "job", .endpoints = "h:1"};
    failing = NULL;
    loop_rc = 0;
    alive = 0;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    buf_fini(&said);
    buf_fini(&on_out);
    buf_fini(&on_err);
    arena_fini(&arena);
    return 0;
}

static void assert_told(const char *asked, const char *err) {
    assert_string_equal(buf_str(&said), asked);
    assert_string_equal(buf_str(&on_err), err);
    assert_int_equal(alive, 0);
}

static void nobody(void) {
    refuse(STORE_UNKNOWN, "connection refused");
}

static void nobody_says_why(void) {
    refuse(STORE_REFUSED, NULL);
}

static void test_a_store_that_does_not_answer_is_named_with_why(void **state) {
    (void)state;
    assert_int_equal(ask(nobody), STATUS_NO_STORE);
    assert_told(ASKS "stops\n", "error, store: the store at h:1: connection refused\n");
    assert_int_equal(ask(nobody_says_why), STATUS_NO_STORE);
    assert_told(ASKS "stops\n", "error, store: the store at h:1: \n");
    assert_string_equal(buf_str(&on_out), "");
}

static void test_a_run_that_is_not_there_is_said(void **state) {
    (void)state;
    make_job(HEAD_RUN, true);
    n_pairs = 0;
    assert_int_equal(ask(answer), STATUS_NO_RUN);
    assert_told(ASKS "stops\n", "error, run: the store at h:1 has no run job\n");
    make_job(HEAD_RUN, true);
    pairs[0].value = kv_string("nonsense");
    assert_int_equal(ask(answer), STATUS_NO_RUN);
    assert_told(ASKS "stops\n", "error, run: the store at h:1 has no run job that this rankrun can "
                                "read: its value is none\n");
    assert_string_equal(buf_str(&on_out), "");
}

static void test_a_run_of_a_long_id_is_asked_for_whole(void **state) {
    char id[201];
    BUF_FINI struct buf asked = {0};
    (void)state;
    memset(id, 'j', sizeof(id));
    id[200] = '\0';
    o.run_id = id;
    n_pairs = 0;
    buf_printf(&asked,
               "store at h:1\nasks 1 of kind 0: /rankrun/%s/ to /rankrun/%s0 within 5000 ms\n"
               "runs\nstops\n",
               id, id);
    assert_int_equal(ask(answer), STATUS_NO_RUN);
    assert_string_equal(buf_str(&said), buf_str(&asked));
    o.run_id = "job";
}

static void two_beats(void);

static void one_beat(void) {
    answer();
    hear("job", a, false, 1);
}

/* Who is no member any more stood before one that is. */
static void test_who_is_gone_is_not_listened_for(void **state) {
    static const union value gone = {.gone = {GONE_LEFT}}, session = {.session = {1}};
    (void)state;
    make_job(HEAD_RUN, false);
    n_pairs = 2; /* without plans */
    put(KEY_GONE, c, &gone);
    put(KEY_SESSION, a, &session);
    assert_int_equal(ask(one_beat), STATUS_FOUND);
    assert_told(ASKS WATCHES "stops\n", "");
    static const union value plan = {.plan = {.group_rank = 2, .rank_base = 2, .world = 3}};
    n_pairs = 2;
    put(KEY_GONE, c, &gone);
    put(KEY_SESSION, a, &session);
    put(KEY_SESSION, b, &session);
    put(KEY_PLAN, c, &plan); /* a place, and no session: its beat is not waited for */
    assert_int_equal(ask(two_beats), STATUS_FOUND);
    assert_told(ASKS WATCHES "so far\nstops\nstops\n", "");
}

static void test_who_cannot_beat_is_not_listened_for(void **state) {
    (void)state;
    make_job(HEAD_RUN, false);
    assert_int_equal(ask(answer), STATUS_FOUND);
    assert_told(ASKS "stops\n", "");
    assert_non_null(strstr(buf_str(&on_out), "phase          running, round 2\n"));
    make_job(HEAD_CLOSED, true);
    assert_int_equal(ask(answer), STATUS_FOUND);
    assert_told(ASKS "stops\n", "");
}

static void assert_beat(const char *uid, const char *text) {
    const char *line = strstr(buf_str(&on_out), uid);
    assert_non_null(line);
    size_t n = strcspn(line, "\n");
    if (n < strlen(text) || strncmp(line + n - strlen(text), text, strlen(text)) != 0)
        fail_msg("\"%.*s\" does not end with \"%s\"", (int)n, line, text);
}

static void two_beats(void) {
    answer();
    hear("job2", a, false, 1);
    hear("job", c, false, 2);
    hear("job", b, false, 30);
    hear("job", b, false, 40); /* the first is the one that counts */
    hear("job", b, true, 50);
    buf_puts(&said, "so far\n");
    hear("job", a, true, 60);
    hear("job", a, false, 70);
}

static void test_each_member_is_listened_for_until_all_were_heard(void **state) {
    (void)state;
    make_job(HEAD_RUN, true);
    assert_int_equal(ask(two_beats), STATUS_FOUND);
    assert_told(ASKS WATCHES "so far\nstops\nstops\n", "");
    assert_beat(b, "after 30 ms");
    assert_beat(a, "session ended");
}

static void beats_at_once(void) {
    struct kv_event e[] = {{.pair = {.key = key_of("job", KEY_SESSION, a)}},
                           {.pair = {.key = key_of("job", KEY_SESSION, b)}}};
    answer();
    news_fn(news_arg, &(struct store_news){.events = e, .n_events = 2});
}

static void test_beats_that_come_together_are_heard_together(void **state) {
    (void)state;
    make_job(HEAD_FORM, true);
    assert_int_equal(ask(beats_at_once), STATUS_FOUND);
    assert_told(ASKS WATCHES "stops\n", "");
    assert_beat(a, "after 0 ms");
}

static void silence(void) {
    answer();
    timer_fn(timer_arg, 0);
}

static void test_who_was_not_heard_in_two_beats_is_told(void **state) {
    (void)state;
    make_job(HEAD_RUN, true);
    assert_int_equal(ask(silence), STATUS_FOUND);
    assert_told(ASKS WATCHES "stops\n", "");
    assert_beat(a, "none in 500 ms");
    o.status_json = true;
    assert_int_equal(ask(silence), STATUS_FOUND);
    assert_int_equal(buf_str(&on_out)[0], '{');
    assert_non_null(strstr(buf_str(&on_out), "\"beat_ms\":250"));
}

static void a_watch_that_ends(void) {
    answer();
    news_fn(news_arg, &(struct store_news){.ended = true, .why = "cut"});
}

static void a_watch_that_just_ends(void) {
    answer();
    news_fn(news_arg, &(struct store_news){.ended = true});
}

static void test_a_watch_that_ends_is_told_with_why(void **state) {
    (void)state;
    make_job(HEAD_RUN, true);
    assert_int_equal(ask(a_watch_that_ends), STATUS_FOUND);
    assert_told(ASKS WATCHES "stops\n",
                "warning, store: the store at h:1 ended the watch for beats: cut\n");
    assert_int_equal(ask(a_watch_that_just_ends), STATUS_FOUND);
    assert_told(ASKS WATCHES "stops\n",
                "warning, store: the store at h:1 ended the watch for beats: \n");
}

static void test_what_cannot_be_made_is_told(void **state) {
    (void)state;
    failing = "loop";
    assert_int_equal(ask(NULL), STATUS_NO_STORE);
    assert_told("", "error, error: no loop\n");
    failing = "store";
    assert_int_equal(ask(NULL), STATUS_NO_STORE);
    assert_told("store at h:1\n", "error, error: no store\n");
    failing = NULL;
    loop_rc = -EIO;
    assert_int_equal(ask(NULL), STATUS_NO_STORE);
    assert_told(ASKS, "error, error: the loop broke\n");
    o.backend = BACKEND_ETCD_LEGACY;
    assert_int_equal(ask(NULL), STATUS_NO_STORE);
    assert_string_equal(buf_str(&on_err), "error, error: the loop broke\n");
    failing = "loop";
    assert_int_equal(ask(NULL), STATUS_NO_STORE);
    assert_told("", "error, error: no loop\n");
    failing = "tree";
    assert_int_equal(ask(NULL), STATUS_NO_STORE);
    assert_told("tree at h:1\n", "error, error: no tree\n");
    assert_string_equal(buf_str(&on_out), "");
}

/* ---- a tree ---- */

#define ASKS_TREE                                                                                  \
    "tree at h:1\nasks 1 of /torchelastic/p2p/run_job/rdzv within 5000 ms\nruns\nstops\n"

static struct tree_node nodes[16];
static struct tree_answer tree;

static void answer_tree(void) {
    tree_fn(tree_arg, 1, &tree);
}

static void add(const char *rest, const char *value) {
    nodes[tree.n++] = (struct tree_node){
        .key = arena_printf(&arena, "/torchelastic/p2p/run_job/rdzv/%s", rest), .value = value};
}

static void make_tree(const char *state_text) {
    tree = (struct tree_answer){.result = TREE_DONE, .index = 77, .nodes = nodes, .text = ""};
    add("active_version", state_text);
}

static void test_each_trouble_with_a_tree_is_said(void **state) {
    static const struct {
        enum tree_result result;
        int code;
        const char *said;
    } ways[] = {
        {TREE_LOST, 69, "the etcd at h:1: why\n"},
        {TREE_STRANGE, 69, "the etcd at h:1: why\n"},
        {TREE_REFUSED, 69, "the etcd at h:1: why\n"},
        {TREE_CHANGED, 69, "the etcd at h:1: why\n"},
        {TREE_EXISTS, 69, "the etcd at h:1: why\n"},
        {TREE_CLEARED, 69, "the etcd at h:1: why\n"},
        {TREE_MISSING, 1,
         "the etcd at h:1 has no run job: there is no /torchelastic/p2p/run_job/rdzv\n"},
        {TREE_NO_V2, 64,
         "what answers at h:1 does not serve etcd's v2 API: an etcd is started with --enable-v2 "
         "(up to 3.5 has it); a job of rankrun's own protocol is asked with --rdzv-backend etcd-v3 "
         "or embedded\n"},
    };
    (void)state;
    o.backend = BACKEND_ETCD_LEGACY;
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        BUF_FINI struct buf all = {0};
        buf_printf(&all, "error, %s: %s", ways[i].code == 1 ? "run" : "store", ways[i].said);
        tree = (struct tree_answer){.result = ways[i].result, .text = "why"};
        assert_int_equal(ask(answer_tree), ways[i].code);
        assert_told(ASKS_TREE, buf_str(&all));
        assert_string_equal(buf_str(&on_out), "");
    }
    make_tree("no state");
    assert_int_equal(ask(answer_tree), STATUS_NO_RUN);
    assert_told(ASKS_TREE,
                "error, run: /torchelastic/p2p/run_job/rdzv/active_version at h:1 holds no "
                "state, which is no state of torchelastic's rendezvous\n");
}

/* Drawn ones, as text and as JSON: the first are in status-legacy.txt to be read, and a number for each hundred more. */
static const char legacy_path[] = "tests/agent/status-legacy.txt";
static struct rand chance;

/* Once in a list of arguments: compilers differ in which of several comes first. */
static int draw(int n) {
    return (int)rand_below(&chance, (uint64_t)n);
}

static const char *encoded(const char *text) {
    BUF_FINI struct buf out = {0};
    base64_put(&out, text, strlen(text));
    return arena_strdup(&arena, buf_str(&out));
}

static void tell(const char *name, const char *value) {
    const char *key = arena_printf(&arena, "v_3/kv/%s", encoded(name));
    add(key, encoded(value));
}

static void add_member(int rank) {
    if (draw(4))
        add(arena_printf(&arena, "v_3/rank_%d", rank), "");
    if (draw(4))
        tell(arena_printf(&arena, "torchelastic/role_info%d", rank),
             arena_printf(&arena, "{\"role\": \"r\", \"local_world_size\": %d}", draw(4)));
    if (draw(4) == 0)
        tell(arena_printf(&arena, "torchelastic/agent/terminal_state%d", rank), "done");
}

static void draw_tree(void) {
    static const char *const states[] = {"setup", "joinable", "frozen",
                                         "final", "closed",   "closed"};
    static const char *const ends[] = {"", ", \"rankrun_end\": \"\"",
                                       ", \"rankrun_end\": \"rank 1: exit 3\""};
    static const char *const members[] = {"0", "0, 1", "0, 1, 2"};
    static const char *const ours[] = {"{}", "{\"0\": \"abc\"}", "{\"0\": \"abc\", \"1\": \"d\"}"};
    int n = draw(3), k = draw(3);
    const char *state_word = states[draw(6)], *end = ends[draw(3)];
    make_tree(
        arena_printf(&arena,
                     "{\"status\": \"%s\", \"version\": \"3\", \"participants\": [%s], "
                     "\"rankrun\": %s, \"keep_alives\": [\"/torchelastic/p2p/run_job/rdzv/v_3/"
                     "rank_0\"], \"num_workers_waiting\": %d%s}",
                     state_word, members[n], ours[k], draw(3), end));
    if (draw(16) == 0)
        tree.n = 0;
    for (int rank = 0; rank <= n; rank++)
        add_member(rank);
    if (draw(3))
        tell("MASTER_ADDR", "10.0.0.1");
    static const char *const ports[] = {"1", "65535", "65536", "29500", "x"};
    if (draw(3))
        tell("MASTER_PORT", ports[draw(5)]);
}

static void ask_both(struct buf *out) {
    draw_tree();
    for (int json = 0; json < 2; json++) {
        o.status_json = json;
        int code = ask(answer_tree);
        buf_printf(out, "%s%sexit %d\n", buf_str(&on_out), buf_str(&on_err), code);
    }
}

static void say_trees(struct buf *out) {
    enum { SHOWN = 12, GROUPS = 4, DRAWS = 100 };
    rand_init(&chance, 5);
    o.backend = BACKEND_ETCD_LEGACY;
    o.run_id = "job";
    o.endpoints = "h:1";
    for (int i = 0; i < SHOWN; i++, buf_puts(out, "\n"))
        ask_both(out);
    for (int group = 0; group < GROUPS; group++) {
        BUF_FINI struct buf all = {0};
        uint64_t sum = 0;
        for (int i = 0; i < DRAWS; i++)
            ask_both(&all);
        for (const char *p = buf_str(&all); *p; p++)
            sum = ((sum ^ (unsigned char)*p) * 0x9e3779b97f4a7c15u) ^ sum >> 29;
        buf_printf(out, "%d more: %016" PRIx64 "\n", DRAWS, sum);
        arena_fini(&arena);
    }
}

static void test_trees_are_told_as_on_record(void **state) {
    (void)state;
    on_record_same(legacy_path, say_trees, "a drawn tree");
}

static void test_other_folders_are_asked_for_by_their_prefix(void **state) {
    (void)state;
    o.backend = BACKEND_ETCD_LEGACY;
    o.rdzv.etcd_prefix = "/mine";
    tree = (struct tree_answer){.result = TREE_LOST, .text = "why"};
    assert_int_equal(ask(answer_tree), 69);
    assert_told("tree at h:1\nasks 1 of /mine/run_job/rdzv within 5000 ms\nruns\nstops\n",
                "error, store: the etcd at h:1: why\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(test_a_store_that_does_not_answer_is_named_with_why),
        TEST(test_a_run_that_is_not_there_is_said),
        TEST(test_a_run_of_a_long_id_is_asked_for_whole),
        TEST(test_who_is_gone_is_not_listened_for),
        TEST(test_who_cannot_beat_is_not_listened_for),
        TEST(test_each_member_is_listened_for_until_all_were_heard),
        TEST(test_beats_that_come_together_are_heard_together),
        TEST(test_who_was_not_heard_in_two_beats_is_told),
        TEST(test_a_watch_that_ends_is_told_with_why),
        TEST(test_what_cannot_be_made_is_told),
        TEST(test_each_trouble_with_a_tree_is_said),
        TEST(test_trees_are_told_as_on_record),
        TEST(test_other_folders_are_asked_for_by_their_prefix),
    };
    int rc;
    if (on_record_written(argc, argv, legacy_path, say_trees, &rc))
        return rc;
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
