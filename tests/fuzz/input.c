/* What others send, for AFL++: the first byte says who reads the rest. A crash is what a sanitizer
 * finds, an assertion of the code, or one of those here. */
#include "base/json.h"
#include "agent/core/kv.h"
#include "agent/hosts/hosts.h"
#include "agent/legacy/document.h"
#include "agent/store/answer.h"
#include "agent/store/codec.h"
#include "agent/store/etcd.h"
#include "agent/store/gateway.h"
#include "base/http/response.h"
#include "agent/store/metrics.h"
#include "agent/store/quota.h"
#include "agent/store/token.h"
#include "agent/store/tree_answer.h"
#include "tests/fuzz/fuzzed.h"

#include <assert.h>

typedef void read_fn(struct arena *a, const char *text, size_t n);

/* ---- the embedded store's requests: a path and a body a line, one after the other ---- */

static void check_answer(struct arena *a, const struct answer *answer) {
    struct err err = {0};
    assert(answer->status >= 200 && answer->status < 500);
    assert(json_parse(a, buf_str(&answer->body), answer->body.len, &err));
}

/* What the store tells of the jobs in it: a line of theirs cannot be made by a key or a value. */
static void check_metrics(struct kv *kv) {
    const struct metrics counted = {0};
    const struct metrics_now now = {0};
    struct buf text = {0};
    metrics_put(&text, &counted, &now, kv);
    for (const char *line = buf_str(&text); *line; line += strcspn(line, "\n") + 1)
        assert(strncmp(line, "# ", 2) == 0 || strncmp(line, "rankrun_", 8) == 0);
    buf_fini(&text);
}

static void read_requests(struct arena *a, const char *text, size_t n) {
    static const char *const paths[] = {"/v3/kv/compaction",   "/v3/kv/deleterange",
                                        "/v3/kv/put",          "/v3/kv/range",
                                        "/v3/kv/txn",          "/v3/lease/grant",
                                        "/v3/lease/keepalive", "/v3/lease/revoke",
                                        "/v3/watch",           "/nowhere"};
    enum { PATHS = sizeof(paths) / sizeof(*paths) };
    struct kv *kv = kv_new(1, 16);
    struct quota full = {.limits = {1, 1, 1}, .runs_full = true, .others_full = true};
    struct kv_watch *w =
        kv_watch_new(kv, (struct kv_bytes){"\0", 1}, (struct kv_bytes){"\0", 1}, 1, kv);
    int64_t now_ns = 0;
    for (const char *end = text + n; text < end;) {
        const char *line = memchr(text, '\n', (size_t)(end - text));
        const char *path = paths[(unsigned char)*text++ % PATHS];
        size_t len = (size_t)((line ? line : end) - text);
        if (text > end || (line && line < text))
            break;
        if (strcmp(path, "/v3/watch") == 0) {
            struct gateway_watch watch;
            if (gateway_take_watch(a, text, len, &watch, NULL) == 0)
                kv_watch_free(
                    kv_watch_new(kv, watch.key, watch.range_end, watch.start_revision, NULL));
        } else {
            struct answer answer = {0};
            answer_request(&answer, kv, path, text, len, now_ns, len % 7 == 6 ? &full : NULL);
            while (answer.more)
                answer.more = !answer_more(&answer, &answer.body);
            check_answer(a, &answer);
            answer_fini(&answer, kv);
        }
        now_ns = kv_lease_expire(kv, now_ns) < INT64_MAX ? now_ns + 1000000000 : now_ns;
        text += len + 1;
    }
    struct kv_event *events;
    size_t n_events;
    if (kv_watch_ready(kv))
        kv_watch_take(w, 0, a, &events, &n_events);
    check_metrics(kv);
    kv_watch_free(w);
    kv_free(kv);
}

/* ---- what an etcd answers ---- */

static void read_answers(struct arena *a, const char *text, size_t n) {
    struct kv_txn_result txn;
    struct gateway_line line;
    struct gateway_lease lease;
    gateway_take_txn_result(a, text, n, &txn, NULL);
    gateway_take_line(a, text, n, &line, NULL);
    gateway_take_lease_answer(a, text, n, &lease, NULL);
    gateway_take_error(a, text, n);
}

static void read_tree(struct arena *a, const char *text, size_t n) {
    static const long statuses[] = {200, 201, 400, 403, 404, 412, 500, 0};
    unsigned how = n ? (unsigned char)*text : 0;
    struct buf body = {0};
    if (n)
        buf_put(&body, text + 1, n - 1);
    struct tree_answer answer = tree_answer_read(a, (enum tree_verb)(how / 8 % (TREE_WAIT + 1)),
                                                 statuses[how % 8], &body, how & 128 ? "42" : "");
    assert(answer.result != TREE_DONE || statuses[how % 8] < 300);
    buf_fini(&body);
}

/* ---- the answer around it ---- */

static void put_header(void *arg, const char *line, size_t n) {
    buf_printf(arg, "%zu:", n);
    buf_put(arg, line, n);
}

static bool put_body(void *arg, const char *p, size_t n) {
    buf_put(arg, p, n);
    return true;
}

/* In pieces of that many bytes; appends what is in it, and what became of it. */
static void put_response(struct buf *out, const char *text, size_t n, size_t piece) {
    static const struct response_reader reader = {put_header, put_body};
    enum response_step step = RESPONSE_MORE;
    struct response r;
    size_t at = 0, used;
    response_begin(&r, &reader, out);
    while (at < n && step == RESPONSE_MORE) {
        size_t k = piece < n - at ? piece : n - at;
        step = response_take(&r, text + at, k, &used);
        assert(used <= k && (used == k || step != RESPONSE_MORE));
        at += used;
    }
    if (step == RESPONSE_MORE)
        step = response_end(&r);
    assert(step == RESPONSE_BROKEN ? r.why[0] : r.status >= 200);
    buf_printf(out, " %d", step);
    if (step == RESPONSE_WHOLE)
        buf_printf(out, " %ld %d %zu", r.status, r.keeps, at);
    response_fini(&r);
}

/* The pieces that the network makes of it change nothing. */
static void read_response(struct arena *a, const char *text, size_t n) {
    struct buf whole = {0}, apart = {0};
    (void)a;
    put_response(&whole, text, n, n);
    put_response(&apart, text, n, 1 + n % 7);
    assert(strcmp(buf_str(&whole), buf_str(&apart)) == 0);
    buf_fini(&whole);
    buf_fini(&apart);
}

/* ---- what other agents wrote ---- */

static void read_value(struct arena *a, const char *text, size_t n) {
    enum key_kind kind = n ? (enum key_kind)((unsigned char)*text % KEY_INCARNATION) : KEY_HEAD;
    union value first, second;
    struct buf once = {0}, twice = {0};
    (void)a;
    if (n && codec_take(kind, text + 1, n - 1, &first, NULL) == 0) {
        codec_put(&once, kind, &first);
        assert(codec_take(kind, once.data, once.len, &second, NULL) == 0);
        codec_put(&twice, kind, &second);
        assert(strcmp(buf_str(&once), buf_str(&twice)) == 0);
    }
    buf_fini(&once);
    buf_fini(&twice);
}

static void read_document(struct arena *a, const char *text, size_t n) {
    struct document d = {0};
    struct document_edit e = {.status = "frozen",
                              .add_rank = 3,
                              .uid = "0123456789abcdef",
                              .begin_keep_alives = true,
                              .add_keep_alive = "/k",
                              .waiting = 1,
                              .end = ""};
    struct buf out = {0};
    document_read(&d, arena_strndup(a, text, n), 7);
    document_rank(&d, "0123456789abcdef");
    document_is_pure(&d);
    document_end(&d);
    if (d.status != DOCUMENT_STRANGE && d.status != DOCUMENT_ABSENT)
        document_write(&d, &e, &out);
    assert(!out.len || json_parse(a, buf_str(&out), out.len, NULL));
    document_fini(&d);
    buf_fini(&out);
}

/* ---- what people wrote ---- */

static void read_hosts(struct arena *a, const char *text, size_t n) {
    struct hosts hosts = {0};
    const char *word = arena_strndup(a, text, n);
    if (hosts_parse_file(text, n, "hosts", a, &hosts, NULL) == 0)
        for (size_t i = 0; i < hosts.n; i++)
            assert(hosts.list[i].name[0] && hosts.list[i].slots >= 0 &&
                   hosts.list[i].slots <= HOST_SLOTS_MAX);
    hosts_parse_list(word, a, &hosts, NULL);
}

static void read_words(struct arena *a, const char *text, size_t n) {
    char words[64];
    const char *line = arena_strndup(a, text, n);
    etcd_words(line, words, sizeof(words));
    assert(!token_shown(line, "s3cret") || strcmp(line, "Bearer s3cret") == 0);
}

static const struct subject {
    read_fn *read;
    const char *seed;
} subjects[] = {
    {read_requests,
     "H{\"key\":\"Zm9v\",\"value\":\"YmFy\",\"prev_kv\":true}\n"
     "K{\"ID\":\"5\",\"TTL\":\"2\"}\nH{\"key\":\"Zm9v\",\"value\":\"YmFy\",\"lease\":\"5\"}\n"
     "J{\"compare\":[{\"key\":\"Zm9v\",\"target\":\"CREATE\",\"result\":\"EQUAL\","
     "\"create_revision\":\"2\"}],\"success\":[{\"request_put\":{\"key\":\"YQ==\"}},"
     "{\"request_range\":{\"key\":\"AA==\",\"range_end\":\"AA==\",\"limit\":1}}],"
     "\"failure\":[{\"request_delete_range\":{\"key\":\"YQ==\"}}]}\n"
     "L{\"ID\":\"5\"}\nM{\"ID\":5}\nF{\"revision\":\"3\"}\nG{\"key\":\"YQ==\"}\n"
     "I{\"key\":\"YQ==\",\"revision\":\"4\"}\n"
     "N{\"create_request\":{\"key\":\"YQ==\",\"start_revision\":\"1\"}}\n"
     "H{\"key\":\"L3JhbmtydW4veCUwYS9jdXI=\",\"value\":"
     "\"eyJpbmMiOiIwMDAwMDAwMDAwMDAwMGFhIiwibWluIjoxLCJtYXgiOjJ9\"}\n"},
    {read_answers,
     "{\"header\":{\"revision\":\"7\"},\"succeeded\":true,\"responses\":[{\"response_range\":{"
     "\"kvs\":[{\"key\":\"YQ==\",\"create_revision\":\"2\",\"mod_revision\":\"3\",\"version\":"
     "\"2\",\"value\":\"Yg==\",\"lease\":\"9\"}],\"more\":true,\"count\":\"1\"}},{"
     "\"response_put\":{}},{\"response_delete_range\":{\"deleted\":\"1\"}}]}"},
    {read_answers,
     "{\"result\":{\"header\":{\"revision\":\"7\"},\"created\":true,\"canceled\":true,"
     "\"compact_revision\":\"4\",\"events\":[{\"type\":\"DELETE\",\"kv\":{\"key\":\"YQ==\","
     "\"mod_revision\":\"3\"}}]}}"},
    {read_tree,
     "\x80{\"action\":\"get\",\"node\":{\"key\":\"/a\",\"dir\":true,\"nodes\":[{\"key\":\"/a/b\","
     "\"value\":\"x\",\"ttl\":9,\"modifiedIndex\":7,\"createdIndex\":7}],\"modifiedIndex\":4,"
     "\"createdIndex\":4}}"},
    {read_tree,
     "\x05{\"errorCode\":101,\"message\":\"Compare failed\",\"cause\":\"[1 != 2]\",\"index\":9}"},
    {read_value, "\x01{\"seq\":12}"},
    {read_document,
     "{\"status\":\"final\",\"version\":\"3\",\"participants\":[0,1],\"keep_alives\":[\"/k/0\"],"
     "\"num_workers_waiting\":1,\"rankrun\":{\"0\":\"0123456789abcdef\"}}"},
    {read_hosts, "# mine\na slots=2 # two\nb:3\n[fe80::1]:4\n\nc,d:2\n"},
    {read_response,
     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX-Etcd-Index: 5\r\n"
     "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nabcde\r\n1\r\nf\r\n0\r\nTrailer: x\r\n\r\n"},
    {read_response, "HTTP/1.0 404 Not Found\nConnection: keep-alive\nContent-Length: 3\n\nabc"},
    {read_words, "2026-01-02 03:04:05.6 C | etcdmain: {\"msg\":\"a\",\"error\":\"b\"}"},
};
enum { SUBJECTS = sizeof(subjects) / sizeof(*subjects) };

static void take(const char *bytes, size_t n) {
    struct arena a = {0};
    if (n > 0)
        subjects[(unsigned char)*bytes % SUBJECTS].read(&a, bytes + 1, n - 1);
    arena_fini(&a);
}

static void put_seed(int i, struct buf *out) {
    buf_putc(out, (char)i);
    buf_puts(out, subjects[i].seed);
}

int main(int argc, char **argv) {
    static const struct fuzzed inputs = {NULL, take, put_seed, SUBJECTS};
    return fuzzed_main(&inputs, argc, argv);
}
