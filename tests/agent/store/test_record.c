/* What a store says to thousands of drawn requests, right and damaged, is as it was when somebody last looked at it. All that
 * is answered goes into a number; record.txt has one for each part and every few draws. Whoever changes what is answered finds
 * here that it is another; `make transcripts` writes the file anew. */
#include "agent/store/answer.h"

#include "agent/core/lifeline.h"
#include "agent/store/access.h"
#include "agent/store/codec.h"
#include "agent/store/etcd.h"
#include "agent/store/lifelines.h"
#include "agent/store/limits/bounds.h"
#include "agent/store/limits/page.h"
#include "agent/store/marker.h"
#include "agent/store/metrics.h"
#include "agent/store/quota.h"
#include "agent/store/tree_answer.h"
#include "base/rand.h"
#include "base/str.h"
#include "tests/agent/on_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char path[] = "tests/agent/store/record.txt";

static uint64_t sum;
static struct rand chance;

static void see(uint64_t word) {
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 29;
}

static void see_bytes(const char *data, size_t n) {
    for (size_t i = 0; i < n; i++)
        see((unsigned char)data[i]);
    see(~(uint64_t)n);
}

static void see_text(const char *s) {
    if (s)
        see_bytes(s, strlen(s));
    else
        see(UINT64_MAX);
}

static int draw(int n) {
    return (int)rand_below(&chance, (uint64_t)n);
}

/* A text is something else. */
static void damage_text(struct buf *out) {
    static const char *const others[] = {"5",    "true",  "null", "[]", "{}",
                                         "\"\"", "\"!\"", "-1",   "1.5"};
    const char *begin = buf_str(out);
    for (int skip = draw(12); skip && strchr(begin, '"'); skip--)
        begin = strchr(begin, '"') + 1;
    const char *from = strchr(begin, '"'), *to = from ? strchr(from + 1, '"') : NULL;
    if (!to)
        return;
    BUF_FINI struct buf is = {0};
    buf_put(&is, out->data, (size_t)(from - out->data));
    buf_puts(&is, others[draw(9)]);
    buf_puts(&is, to + 1);
    buf_clear(out);
    buf_put(out, is.data, is.len);
}

/* A byte is another, is missing, or is there twice; a text is something else; or it is cut. */
static void damage(struct buf *text) {
    static const char bad[] = {0, '"', '{', '}', ']', ',', '9', '-', '\\', ' ', 'x', (char)0xff};
    size_t at = text->len ? (size_t)draw((int)text->len) : 0;
    if (!text->len)
        return;
    switch (draw(6)) {
    case 4:
    case 5:
        damage_text(text);
        break;
    case 0:
        text->data[at] = bad[draw(sizeof(bad))];
        break;
    case 1:
        memmove(text->data + at, text->data + at + 1, text->len - at - 1);
        text->len--;
        break;
    case 2:
        text->len = at;
        break;
    default:
        text->data[at] = text->data[draw((int)text->len)];
    }
}

/* ---- requests ---- */

static const char *const keys[] = {
    "a",
    "ab",
    "b",
    "/rankrun/job/cur",
    "/rankrun/job/0123456789abcdef/head",
    "/rankrun/job/0123456789abcdef/s/00112233445566778899aabbccddeeff",
    "/rankrun/other/cur",
    "/rankrun/quarantine",
    "/rankrun/job/",
    "z\xff"};
static const char *const ends[] = {"b", "c", "/rankrun/job0", "/rankrun/job/zzz", "0", "z"};
static char large[20000];

static struct kv_bytes draw_key(void) {
    return draw(40) ? kv_string(keys[draw(sizeof(keys) / sizeof(*keys))]) : kv_string("");
}

static struct kv_bytes draw_end(void) {
    return draw(3)   ? kv_string("")
           : draw(5) ? kv_string(ends[draw(sizeof(ends) / sizeof(*ends))])
                     : (struct kv_bytes){"", 1};
}

static struct kv_bytes draw_value(void) {
    static const size_t sizes[] = {0, 1, 2, 3, 100, 700, QUOTA_VALUE_MAX, QUOTA_VALUE_MAX + 1};
    return (struct kv_bytes){large, draw(8) ? (size_t)draw(40) : sizes[draw(8)]};
}

static struct kv_op draw_op(int64_t revision) {
    struct kv_op op = {.kind = (enum kv_op_kind)draw(3), .key = draw_key()};
    if (op.kind == KV_PUT) {
        op.value = draw_value();
        op.lease = draw(3) ? 0 : draw(6);
    } else {
        op.range_end = draw_end();
    }
    if (op.kind == KV_RANGE) {
        op.limit = draw(2) ? draw(4) : 0;
        op.revision = draw(4) ? 0 : revision - 1 + draw(3);
        op.keys_only = !draw(3);
        op.count_only = !draw(4);
    } else {
        op.prev_kv = draw(2);
    }
    return op;
}

static void put_txn(struct buf *out, int64_t revision, bool own) {
    struct kv_compare c[3];
    struct kv_op ops[6];
    struct kv_txn t = {.compares = c, .success = ops, .failure = ops + 3};
    t.n_compares = (size_t)draw(3);
    t.n_success = (size_t)draw(4);
    t.n_failure = own ? 0 : (size_t)draw(3);
    for (size_t i = 0; i < 3; i++)
        c[i] = (struct kv_compare){.target = (enum kv_target)draw(5),
                                   .relation = (enum kv_relation)draw(4),
                                   .key = draw_key(),
                                   .range_end = draw_end()};
    for (size_t i = 0; i < t.n_compares; i++)
        if (c[i].target == KV_VALUE)
            c[i].value = draw_value();
        else
            c[i].number = draw(4);
    for (int i = 0; i < 6; i++)
        ops[i] = draw_op(revision);
    for (int i = 0; i < 6 && own; i++)
        ops[i].key = kv_string(keys[3 + draw(3)]);
    gateway_put_txn(out, &t);
}

/* The request of one operation: what stands in a transaction of it. */
static const char *put_lone(struct buf *out, int64_t revision) {
    static const char *const paths[] = {"/v3/kv/range", "/v3/kv/put", "/v3/kv/deleterange"};
    BUF_FINI struct buf whole = {0};
    struct kv_op op = draw_op(revision);
    gateway_put_txn(&whole, &(struct kv_txn){.success = &op, .n_success = 1});
    const char *inside = strchr(strchr(buf_str(&whole), '[') + 2, '{');
    buf_put(out, inside, strlen(inside) - strlen("}]}"));
    return paths[op.kind];
}

static const char *put_request(struct buf *out, int64_t revision) {
    static const char *const leases[] = {"/v3/lease/grant", "/v3/lease/keepalive",
                                         "/v3/lease/revoke", "/v3/kv/lease/revoke"};
    static const char *const nowhere[] = {"/v3/kv", "/v3/kv/txn/", "/v3/kv/put2", "", "/v3/watch2"};
    int which = draw(12), id = draw(7), ttl_s = draw(9) ? draw(70) : 9000000 + draw(2);
    if (which < 4)
        return put_txn(out, revision, draw(2)), "/v3/kv/txn";
    if (which < 8)
        return put_lone(out, revision);
    if (which < 10)
        gateway_put_lease(out, &(struct gateway_lease){id, ttl_s});
    else
        buf_printf(out, "{\"revision\":\"%lld\"}", (long long)revision - 3 + draw(5));
    return which < 10 ? leases[draw(4)] : which < 11 ? "/v3/kv/compaction" : nowhere[draw(5)];
}

static void see_pairs(const struct kv_txn_result *r) {
    see(r->succeeded);
    see((uint64_t)r->revision);
    for (size_t i = 0; i < r->n_results; i++) {
        see(r->results[i].kind);
        see((uint64_t)r->results[i].count << 1 | r->results[i].more);
        for (size_t k = 0; k < r->results[i].n_pairs; k++) {
            const struct kv_pair *p = &r->results[i].pairs[k];
            see_bytes(p->key.data, p->key.len);
            see_bytes(p->value.data, p->value.len);
            see((uint64_t)p->create_revision);
            see((uint64_t)p->mod_revision);
            see((uint64_t)p->version);
            see((uint64_t)p->lease);
        }
    }
}

/* As a client reads it. */
static void see_read(const struct buf *text) {
    ARENA_FINI struct arena a = {0};
    struct kv_txn_result result = {0};
    struct gateway_line line = {0};
    struct gateway_lease lease = {0};
    struct err err = {0};
    int rc = gateway_take_txn_result(&a, text->data, text->len, &result, &err);
    see_text(err.msg);
    see((uint64_t)(int64_t)rc);
    if (rc == 0)
        see_pairs(&result);
    err = (struct err){0};
    rc = gateway_take_line(&a, text->data, text->len, &line, &err);
    see_text(err.msg);
    see((uint64_t)(int64_t)rc);
    see(rc == 0 ? (uint64_t)line.revision << 2 | line.created << 1 | line.canceled : 0);
    err = (struct err){0};
    rc = gateway_take_lease_answer(&a, text->data, text->len, &lease, &err);
    see_text(err.msg);
    see((uint64_t)(int64_t)rc);
    see(rc == 0 ? (uint64_t)lease.id << 32 ^ (uint64_t)lease.ttl_s : 0);
    const char *error = gateway_take_error(&a, text->data, text->len);
    see_text(error);
    see_text(error ? gateway_advise(&a, error) : NULL);
    for (long status = 400; status < 430; status++)
        see(gateway_error_is_final(status, error) << 1 | gateway_error_is_of_token(status, error));
    see_text(gateway_describe_stranger(&a, 399 + draw(3), text));
}

static void see_answer(struct answer *a, struct kv *kv) {
    for (BUF_FINI struct buf rest = {0}; a->more; buf_clear(&rest)) {
        a->more = !answer_more(a, &rest);
        buf_put(&a->body, rest.data, rest.len);
    }
    see((uint64_t)a->status << 5 | a->adds << 4 | a->takes << 3 | a->refused_full << 2 |
        a->asks_run << 1 | a->of_run);
    see_bytes(a->body.data, a->body.len);
    see_read(&a->body);
    damage(&a->body);
    see_read(&a->body);
    answer_fini(a, kv);
}

static void see_quota(const struct quota *q) {
    see(q->written);
    see(q->runs);
    see(q->others);
    see(q->runs_full << 1 | q->others_full);
}

static void play_requests(uint64_t seed) {
    struct kv *kv = kv_new(seed, 0);
    int64_t now_ns = 1;
    struct quota quota = {.limits = {20000 + (size_t)draw(20000), 30000 + (size_t)draw(60000),
                                     10000 + (size_t)draw(30000)}};
    memset(large, 'v', sizeof(large));
    for (int i = 0; i < 150; i++) {
        BUF_FINI struct buf body = {0};
        struct answer answer = {.asks_run = draw(2)};
        const char *to = put_request(&body, kv_revision(kv));
        if (!draw(4))
            damage(&body);
        bool bounded = draw(8);
        answer_request(&answer, kv, to, body.len ? body.data : "", body.len, now_ns,
                       bounded ? &quota : NULL);
        if (answer.status == 200 && answer.adds)
            quota_wrote(&quota, kv, body.len);
        if (answer.status == 200 && answer.takes)
            quota_deleted(&quota);
        see_answer(&answer, kv);
        see_quota(&quota);
        see(marker_needed(kv));
        struct kv_bytes key = draw_key(), end = draw_end();
        see(answer_is_of_run(kv, key, end));
        now_ns += draw(2) ? 1000000000 * (int64_t)draw(4) : draw(1000);
        kv_lease_expire(kv, now_ns);
    }
    kv_free(kv);
}

/* ---- what a watch is told ---- */

static void play_watches(uint64_t seed) {
    (void)seed;
    for (int i = 0; i < 100; i++) {
        ARENA_FINI struct arena a = {0};
        BUF_FINI struct buf asked = {0}, told = {0};
        struct err err = {0};
        struct gateway_watch w = {draw_key(), draw_end(), draw(4)}, back = {0};
        struct kv_event events[3];
        struct gateway_line line = {.revision = draw(9),
                                    .created = !draw(3),
                                    .canceled = !draw(3),
                                    .compact_revision = draw(3),
                                    .events = events,
                                    .n_events = (size_t)draw(4)};
        for (int k = 0; k < 3; k++)
            events[k] = (struct kv_event){
                .deleted = draw(2),
                .pair = {draw_key(), draw_value(), draw(3), draw(3), draw(3), draw(3)}};
        gateway_put_watch(&asked, &w);
        gateway_put_line(&told, &line);
        gateway_put_header(&told, draw(3));
        int code = draw(17);
        gateway_put_error(&told, code, keys[draw(5)]);
        see_bytes(told.data, told.len);
        if (draw(2))
            damage(&asked);
        see_bytes(asked.data, asked.len);
        int rc = gateway_take_watch(&a, asked.data, asked.len, &back, &err);
        see_text(err.msg);
        if (rc == 0) {
            see_bytes(back.key.data, back.key.len);
            see_bytes(back.range_end.data, back.range_end.len);
            see((uint64_t)back.start_revision);
        }
        told.len = (size_t)(strchr(buf_str(&told), '\n') - told.data);
        if (draw(2))
            damage(&told);
        see_read(&told);
    }
}

/* ---- values ---- */

static const char *const fields[] = {"inc",
                                     "attempt",
                                     "former",
                                     "rounds_before",
                                     "hold",
                                     "min",
                                     "max",
                                     "max_restarts",
                                     "max_free_rounds",
                                     "restart_mode",
                                     "on_node_loss",
                                     "hb_ns",
                                     "fence_ns",
                                     "hard_ns",
                                     "suspect_ns",
                                     "node",
                                     "addr",
                                     "slots",
                                     "role",
                                     "want",
                                     "seat",
                                     "last_round",
                                     "past_inc",
                                     "past_round",
                                     "past_n",
                                     "past_restarts",
                                     "past_member",
                                     "stop_ns",
                                     "seq",
                                     "why",
                                     "uid",
                                     "round",
                                     "owed",
                                     "group_rank",
                                     "rank_base",
                                     "world",
                                     "role_rank_base",
                                     "role_world",
                                     "phase",
                                     "pid",
                                     "n",
                                     "last_pid",
                                     "last_n",
                                     "restarts",
                                     "charged_round",
                                     "free_rounds",
                                     "free_age_ms",
                                     "brief_rounds",
                                     "cause",
                                     "failure_uid",
                                     "failure_node",
                                     "failure_rank",
                                     "failure_local_rank",
                                     "failure_pid",
                                     "failure_wait_status",
                                     "failure_error",
                                     "failure_realtime_ns",
                                     "master_addr",
                                     "master_port",
                                     "token",
                                     "outcome",
                                     "error",
                                     "port",
                                     "unknown"};
static const char *const words[] = {"job",       "node",   "replace", "gang",    "member",
                                    "standby",   "left",   "silent",  "none",    "form",
                                    "run",       "end",    "closed",  "failure", "membership",
                                    "succeeded", "failed", "ok",      "fenced"};
static const size_t sizes[] = {1, 2, 15, 16, 17, 31, 32, 33, 62, 63, 64, 65, 255, 256, 257};
static const char *const numbers[] = {"0",
                                      "1",
                                      "-1",
                                      "7",
                                      "2147483647",
                                      "2147483648",
                                      "-2147483648",
                                      "-2147483649",
                                      "9223372036854775807",
                                      "9223372036854775808",
                                      "1.5",
                                      "true",
                                      "null",
                                      "[]"};

/* Any number, or a text of any length that fits, in each field: by what the reader takes. */
static void put_value(struct buf *out) {
    buf_putc(out, '{');
    for (size_t i = 0, n = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        if (draw(8))
            continue;
        buf_printf(out, "%s\"%s\":", n++ ? "," : "", fields[i]);
        if (draw(3))
            buf_puts(out, numbers[draw(draw(4) ? 5 : 14)]);
        else if (draw(2))
            buf_printf(out, "\"%s\"", words[draw(sizeof(words) / sizeof(*words))]);
        else
            buf_printf(out, "\"%.*s\"", (int)sizes[draw(sizeof(sizes) / sizeof(*sizes))], large);
    }
    buf_putc(out, '}');
}

static void play_values(uint64_t seed) {
    (void)seed;
    memset(large, 'v', sizeof(large));
    for (int i = 0; i < 400; i++)
        for (enum key_kind kind = KEY_CUR; kind <= KEY_QUARANTINE; kind++) {
            BUF_FINI struct buf text = {0}, again = {0};
            struct err err = {0};
            union value v;
            put_value(&text);
            if (!draw(4))
                damage(&text);
            int rc = codec_take(kind, text.data, text.len, &v, &err);
            see_text(err.msg);
            see((uint64_t)(int64_t)rc);
            if (rc)
                continue;
            codec_put(&again, kind, &v);
            see_bytes(again.data, again.len);
            assert_int_equal(codec_take(kind, again.data, again.len, &v, NULL), 0);
        }
}

/* ---- metrics ---- */

static void put_pair(struct kv *kv, const char *key, const char *value) {
    ARENA_FINI struct arena a = {0};
    struct kv_txn_result r;
    struct kv_op op = {.kind = KV_PUT, .key = kv_string(key), .value = kv_string(value)};
    assert_int_equal(kv_txn(kv, &(struct kv_txn){.success = &op, .n_success = 1}, &a, &r, NULL), 0);
}

static void put_job(struct kv *kv, const char *run_id) {
    static const char *const incs[] = {"0123456789abcdef", "fedcba9876543210"};
    union value cur = {.cur = {.min = draw(3), .max = draw(9), .max_restarts = draw(5)}};
    union value head = {.head = {.round = draw(9),
                                 .phase = (enum head_phase)draw(5),
                                 .outcome = (enum head_outcome)draw(3),
                                 .restarts = draw(4),
                                 .n = draw(5),
                                 .world = draw(17)}};
    for (int i = 0; i < 6; i++) {
        char key[KEY_SIZE], end[KEY_SIZE];
        BUF_FINI struct buf text = {0};
        union value session = {.session = {1}};
        struct store_key k = {.kind = i == 0 ? KEY_CUR : i == 1 ? KEY_HEAD : KEY_SESSION};
        const union value *v = i == 0 ? &cur : i == 1 ? &head : &session;
        str_copy(cur.cur.inc, sizeof(cur.cur.inc), incs[0]);
        str_copy(k.inc, sizeof(k.inc), incs[!draw(4)]);
        if (i > 1)
            snprintf(k.uid, sizeof(k.uid), "%032x", i);
        if (!draw(5))
            continue;
        key_format(&k, run_id, key, end);
        codec_put(&text, k.kind, v);
        if (!draw(8))
            damage(&text);
        buf_putc(&text, '\0');
        put_pair(kv, key, text.data);
    }
}

static void see_metrics(struct kv *kv) {
    BUF_FINI struct buf out = {0};
    struct metrics m = {.received = (uint64_t)draw(9),
                        .sent = (uint64_t)draw(9),
                        .accepted = (uint64_t)draw(9),
                        .handshakes_failed = (uint64_t)draw(9)};
    struct bounds bounds = {{0}};
    struct metrics_now now = {(size_t)draw(9), (size_t)draw(9),         (size_t)draw(9),
                              (size_t)draw(9), (size_t)draw(9),         draw(2),
                              draw(2),         draw(2) ? &bounds : NULL};
    static const int statuses[] = {200, 400, 401, 403, 404, 405, 412, 429, 426, 500};
    static const char *const paths[] = {"/v3/kv/range",
                                        "/v3/kv/put",
                                        "/v3/kv/deleterange",
                                        "/v3/kv/txn",
                                        "/v3/kv/compaction",
                                        "/v3/lease/grant",
                                        "/v3/lease/keepalive",
                                        "/v3/lease/revoke",
                                        "/v3/watch",
                                        "/v3/rankrun/lifeline",
                                        "/metrics",
                                        "/v3/metrics",
                                        "metrics",
                                        "other",
                                        "/v3/other",
                                        ""};
    for (int i = 0; i < BOUNDS; i++)
        bounds.hits[i] = (uint64_t)draw(3);
    for (int i = 0; i < 60; i++) {
        int status = statuses[draw(10)];
        metrics_count(&m, paths[draw(sizeof(paths) / sizeof(*paths))], status);
    }
    metrics_put(&out, &m, &now, kv);
    const char *behind_version = strstr(buf_str(&out), "# HELP rankrun_store_revision");
    assert_non_null(behind_version);
    see_text(behind_version);
}

/* Ids as nobody of ours would write them, and as long as one may be. */
static void put_escaped(struct kv *kv) {
    static const char *const ids[] = {"%",   "%4",  "%zz", "%4z",  "%z4",  "%4G", "%4g", "%:0",
                                      "%0:", "%4a", "%4f", "%a4",  "%f4",  "%`4", "%4`", "%/4",
                                      "%9f", "%00", "a%2", "a%2f", "%2fb", "%41", "%4A", "%61%62"};
    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
        char key[KEY_SIZE];
        snprintf(key, sizeof(key), "/rankrun/%s/cur", ids[i]);
        put_pair(kv, key, "{\"inc\":\"0123456789abcdef\",\"min\":1,\"max\":2}");
    }
    for (int n = RUN_ID_MAX - 1; n <= RUN_ID_MAX + 1; n++) {
        char key[KEY_SIZE];
        snprintf(key, sizeof(key), "/rankrun/%.*s/cur", n, large);
        put_pair(kv, key, "{\"inc\":\"0123456789abcdef\",\"min\":1,\"max\":2}");
    }
}

static void play_metrics(uint64_t seed) {
    memset(large, 'v', sizeof(large));
    static const char *const runs[] = {"job",      "a b",      "\"quoted\\",
                                       "slash/ed", "per%cent", "\x01\xff"};
    struct kv *kv = kv_new(seed, 0);
    for (int i = 0; i < 12; i++) {
        put_job(kv, runs[draw(sizeof(runs) / sizeof(*runs))]);
        put_pair(kv, keys[draw(sizeof(keys) / sizeof(*keys))], "{\"inc\":\"0123456789abcdef\"}");
        see_metrics(kv);
    }
    put_escaped(kv);
    see_metrics(kv);
    kv_free(kv);
}

/* ---- etcd's older API, and its log ---- */

static void put_tree(struct buf *out, int depth) {
    buf_printf(out, "{\"key\":\"/torchelastic/%d\"", draw(9));
    if (draw(2))
        buf_printf(out, ",\"value\":\"v%d\"", draw(9));
    if (draw(2))
        buf_printf(out, ",\"dir\":%s", draw(2) ? "true" : "false");
    if (draw(2))
        buf_printf(out, ",\"modifiedIndex\":%d", draw(99));
    if (depth && draw(2)) {
        buf_puts(out, ",\"nodes\":[");
        for (int i = 0, n = draw(4); i < n; i++) {
            buf_puts(out, i ? "," : "");
            put_tree(out, depth - 1);
        }
        buf_putc(out, ']');
    }
    buf_putc(out, '}');
}

static void put_tree_answer(struct buf *out) {
    static const char *const actions[] = {"get",   "set", "delete", "expire", "compareAndDelete",
                                          "create"};
    static const int codes[] = {0, 99, 100, 101, 105, 110, 299, 300, 301, 399, 400, 401, 402};
    int code = codes[draw(13)], index = draw(9);
    switch (draw(4)) {
    case 0:
        buf_printf(out, "{\"errorCode\":%d,\"message\":\"m\",\"cause\":\"%s\",\"index\":%d}", code,
                   draw(3) ? "/a" : "Not a file", index);
        break;
    case 1:
        buf_puts(out, draw(2) ? "{\"etcdserver\":\"3.4.23\"}" : "{\"message\":\"none\"}");
        break;
    case 2:
        break;
    default:
        buf_printf(out, "{\"action\":\"%s\",\"node\":", actions[draw(6)]);
        put_tree(out, 2);
        buf_putc(out, '}');
    }
}

static void play_trees(uint64_t seed) {
    static const long statuses[] = {200, 201, 202, 400, 404, 412, 499, 500, 503};
    static const char *const indexes[] = {"", "0", "17", "x", "-1"};
    (void)seed;
    for (int i = 0; i < 600; i++) {
        ARENA_FINI struct arena a = {0};
        BUF_FINI struct buf body = {0};
        put_tree_answer(&body);
        if (!draw(5))
            damage(&body);
        enum tree_verb verb = (enum tree_verb)draw(5);
        long status = statuses[draw(9)];
        struct tree_answer t = tree_answer_read(&a, verb, status, &body, indexes[draw(5)]);
        see(t.result);
        see((uint64_t)t.index);
        see_text(t.text);
        see(t.n);
        for (size_t k = 0; k < t.n; k++) {
            see_text(t.nodes[k].key);
            see_text(t.nodes[k].value);
            see((uint64_t)t.nodes[k].modified << 2 | t.nodes[k].dir << 1 | t.nodes[k].gone);
        }
    }
}

/* ---- who asks ---- */

static void play_askers(uint64_t seed) {
    static const char *const hosts[] = {NULL,
                                        "",
                                        "10.0.0.1",
                                        "10.0.0.1:2379",
                                        "[::1]:2379",
                                        "::1",
                                        "[::1",
                                        "store",
                                        "store:80",
                                        "store:0",
                                        "store:99999",
                                        "zq-evil.example.com",
                                        "zq-evil.example.com:29500",
                                        "a.localhost",
                                        "localhost",
                                        "x.local",
                                        "local",
                                        "xlocal",
                                        "y.internal",
                                        "z.home.arpa",
                                        "home.arpa",
                                        "t.test",
                                        "s.alt",
                                        "p.svc",
                                        "q.cluster.local",
                                        "ZQ-Evil.Internal",
                                        "zq-good.example.org",
                                        "ZQ-GOOD.example.org",
                                        "zq-good.example.or",
                                        "zq-good.example.orgs",
                                        "a b",
                                        "1.2.3.4.5",
                                        "-",
                                        "."};
    static const char *const origins[] = {NULL, "", "null", "http://zq-good.example.org"};
    static const char *const allowed[] = {
        NULL, "", "zq-good.example.org", "a,zq-good.example.org", "zq-good.example.org,b", ",,x,"};
    static const char *const boots[] = {"",   "boot",  "boot\n",  "boot\nx", "other\n",
                                        "\n", "boo\n", "bootx\n", "bootx"};
    static const char *const quarantines[] = {"auto", "always", "never", "x"};
    (void)seed;
    for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++)
        for (size_t k = 0; k < sizeof(allowed) / sizeof(*allowed); k++)
            see_text(page_refuses(NULL, hosts[i], allowed[k]));
    for (size_t i = 0; i < sizeof(origins) / sizeof(*origins); i++)
        see_text(page_refuses(origins[i], "zq-evil.example.com", "zq-evil.example.com"));
    see(marker_judge(NULL, "boot"));
    for (size_t i = 0; i < sizeof(boots) / sizeof(*boots); i++)
        see(marker_judge(boots[i], "boot"));
    for (size_t i = 0; i < 4; i++)
        for (int found = MARKER_NONE; found <= MARKER_UNKNOWN; found++)
            see(marker_owes(quarantines[i], (enum marker_found)found));
}

static void play_texts(uint64_t seed) {
    static const char *const lines[] = {
        "{\"level\":\"fatal\",\"msg\":\"discovery failed\",\"error\":\"wal: max entry\"}",
        "{\"level\":\"info\",\"msg\":\"serving\"}",
        "{\"error\":\"alone\"}",
        "{\"msg\":5}",
        "{",
        "2026-11-30 07:00:00.123456 C | etcdmain: listen tcp 127.0.0.1:1: bind: address in use",
        "2026-11-30 07:00:00.123456 I | etcdserver: starting",
        "plain words",
        "a | b | c",
        ""};
    struct lifeline_claim claim = {
        .inc = "0123456789abcdef", .uid = "00112233445566778899aabbccddeeff", .revision = 17};
    struct lifeline_ends between = {"10.0.0.1:40000", "10.0.0.2:29500"};
    struct tcp_endpoint endpoints[] = {{.host = "store", .port = 1},
                                       {.host = "::1", .port = 65535}};
    struct store_access open = {0}, closed = {.https = true, .token = "shown"};
    char sealed[TOKEN_MAX + 1] = "";
    (void)seed;
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        for (unsigned size = 1; size < 120; size += 17) {
            char said[128];
            etcd_words(lines[i], said, size);
            see_text(said);
        }
    for (int i = 0; i < 4; i++) {
        BUF_FINI struct buf out = {0};
        lifelines_put_request(&out, i % 2 ? "job" : "a \"b\"", &claim, &between,
                              i / 2 ? "tok" : NULL);
        store_access_put_origin(&out, i == 0 ? NULL : i == 1 ? &open : &closed, &endpoints[i % 2]);
        see_bytes(out.data, out.len);
    }
    see_text(store_access_token(&open));
    see_text(store_access_token(&closed));
    open.sealed = &sealed;
    see_text(store_access_token(&open));
    strcpy(sealed, "drawn");
    see_text(store_access_token(&open));
    for (int i = 0; i < BOUNDS; i++)
        see_text(bounds_name((enum store_bound)i));
}

/* ---- the whole ---- */

static const struct {
    const char *name;
    int seeds;
    void (*play)(uint64_t seed);
} parts[] = {
    {"requests", 40, play_requests}, {"watches", 10, play_watches}, {"values", 4, play_values},
    {"metrics", 10, play_metrics},   {"trees", 5, play_trees},      {"askers", 1, play_askers},
    {"texts", 1, play_texts},
};

static void put_all(struct buf *out) {
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        for (int seed = 1; seed <= parts[i].seeds; seed++) {
            sum = 0;
            rand_init(&chance, (uint64_t)seed);
            parts[i].play((uint64_t)seed);
            buf_printf(out, "%s %d %016llx\n", parts[i].name, seed, (unsigned long long)sum);
        }
}

static void test_what_is_answered_is_what_was_answered(void **state) {
    (void)state;
    on_record_same(path, put_all, "the store says something else");
}

int main(int argc, char **argv) {
    const struct CMUnitTest test = cmocka_unit_test(test_what_is_answered_is_what_was_answered);
    return on_record_main(argc, argv, path, put_all, &test);
}
