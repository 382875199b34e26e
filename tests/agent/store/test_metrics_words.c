/* All that /metrics says, compared as a whole: each number is another one, each path and status is asked for once, jobs are in
 * each phase. metrics.txt has the text; `make transcripts` writes it anew. */
#include "agent/core/kv.h"
#include "agent/store/codec.h"
#include "agent/store/limits/bounds.h"
#include "agent/store/metrics.h"
#include "base/arena.h"
#include "tests/agent/on_record.h"

#include <stdio.h>

static const char path[] = "tests/agent/store/metrics.txt";

static struct kv *kv;

static void put_text(const char *key, size_t len, const char *value) {
    ARENA_FINI struct arena arena = {0};
    struct kv_txn_result r;
    struct kv_op op = {.kind = KV_PUT, .key = {key, len}, .value = kv_string(value)};
    struct kv_txn txn = {.success = &op, .n_success = 1};
    assert_int_equal(kv_txn(kv, &txn, &arena, &r, NULL), KV_OK);
}

static void put_key(const char *run, struct store_key k, const union value *v) {
    char text[KEY_SIZE], end[KEY_SIZE];
    BUF_FINI struct buf value = {0};
    strcpy(k.inc, k.kind == KEY_CUR ? "" : "00000000000000aa");
    size_t len = key_format(&k, run, text, end);
    codec_put(&value, k.kind, v);
    put_text(text, len, buf_str(&value));
}

/* Of so many sessions; without a head when phase is below 0. */
static void put_job(const char *run, int phase, int outcome, int restarts, int sessions) {
    union value cur = {.cur = {.inc = "00000000000000aa", .min = 11, .max = 12, .max_restarts = 3}};
    union value head = {.head = {.round = 7,
                                 .phase = (enum head_phase)phase,
                                 .n = 2,
                                 .world = 16,
                                 .restarts = restarts,
                                 .outcome = (enum head_outcome)outcome}};
    union value session = {.session = {.seq = 1}};
    put_key(run, (struct store_key){.kind = KEY_CUR}, &cur);
    if (phase >= 0)
        put_key(run, (struct store_key){.kind = KEY_HEAD}, &head);
    for (int i = 0; i < sessions; i++) {
        struct store_key k = {.kind = KEY_SESSION};
        snprintf(k.uid, sizeof(k.uid), "%032x", i + 1);
        put_key(run, k, &session);
    }
}

/* ---- the store ---- */

/* But for the version, which is another one with each release. */
static void put_numbers(struct buf *out, const struct metrics *m, const struct metrics_now *now) {
    static const char version[] = "{version=\"";
    BUF_FINI struct buf text = {0};
    metrics_put(&text, m, now, kv);
    const char *at = strstr(buf_str(&text), version);
    assert_non_null(at);
    at += strlen(version);
    buf_put(out, text.data, (size_t)(at - text.data));
    buf_puts(out, at + strcspn(at, "\""));
}

static void say_store(struct buf *out) {
    struct bounds bounds = {0};
    struct metrics m = {
        .received = UINT64_MAX, .sent = 12345678901, .accepted = 41, .handshakes_failed = 42};
    struct metrics_now now = {.connections = 51,
                              .watches = 52,
                              .lifelines = 53,
                              .agents = 54,
                              .held = 55,
                              .full = true,
                              .bounds = &bounds};
    for (int i = 0; i < BOUNDS; i++)
        bounds.hits[i] = 61 + (uint64_t)i;
    for (int i = 0; i < METRICS_KINDS * METRICS_STATUSES; i++)
        m.requests[i / METRICS_STATUSES][i % METRICS_STATUSES] = i % 5 ? 1000 + (uint64_t)i : 0;
    kv = kv_new(1, 0);
    for (int i = 0; i < 5; i++)
        put_text("abc", 1 + (size_t)i % 3, "1");
    assert_int_equal(kv_compact(kv, 4, NULL), KV_OK);
    put_numbers(out, &m, &now);
    now = (struct metrics_now){.others_full = true};
    buf_puts(out, "---- of one that has not been asked anything\n");
    m = (struct metrics){0};
    put_numbers(out, &m, &now);
    kv = kv_free(kv);
}

/* ---- which request is counted as what ---- */

static void say_counted(struct buf *out) {
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
                                        "/kv/txn",
                                        "kv/txn",
                                        "//kv/txn",
                                        "/v3/kv/tx",
                                        "/v3/kv/txns",
                                        "/v3kv/txn",
                                        "/v3/",
                                        "/v3",
                                        "/",
                                        "",
                                        "other",
                                        "/v3/other",
                                        "metrics"};
    static const int statuses[] = {200, 201, 400, 401, 402, 403, 404, 405, 412, 429, 500, 0};
    for (size_t p = 0; p < sizeof(paths) / sizeof(*paths); p++) {
        buf_printf(out, "\"%s\":", paths[p]);
        for (size_t s = 0; s < sizeof(statuses) / sizeof(*statuses); s++) {
            struct metrics m = {0};
            int n = 0;
            metrics_count(&m, paths[p], statuses[s]);
            metrics_count(&m, paths[p], statuses[s]);
            for (int k = 0; k < METRICS_KINDS; k++)
                for (int i = 0; i < METRICS_STATUSES; i++)
                    if (m.requests[k][i]) {
                        assert_int_equal(m.requests[k][i], 2);
                        buf_printf(out, " %d=%d.%d", statuses[s], k, i);
                        n++;
                    }
            assert_int_equal(n, 1);
        }
        buf_putc(out, '\n');
    }
}

/* ---- jobs ---- */

static void say_jobs(struct buf *out) {
    static const char *const ids[] = {"a", "b \"\\\n", "\xc3\xa4/%", "...", "%41", "~{}|"};
    kv = kv_new(1, 0);
    for (int phase = -1; phase <= HEAD_CLOSED; phase++) {
        char id[16];
        snprintf(id, sizeof(id), "p%d", phase);
        put_job(id, phase, OUTCOME_NONE, phase + 1, phase);
    }
    put_job("ok", HEAD_CLOSED, OUTCOME_SUCCEEDED, 3, 1);
    put_job("not", HEAD_CLOSED, OUTCOME_FAILED, 4, 2);
    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
        put_job(ids[i], HEAD_RUN, OUTCOME_NONE, 1, (int)i);
    metrics_put_jobs(out, kv);
    kv = kv_free(kv);
}

/* One key alone of which anybody may be the author; the value of a job. */
static void say_key(struct buf *out, const char *key, size_t len, const char *value) {
    BUF_FINI struct buf text = {0};
    kv = kv_new(1, 0);
    put_text(key, len, value);
    metrics_put_jobs(&text, kv);
    const char *label = strstr(buf_str(&text), "_min{run_id=\"");
    buf_printf(out, "%.*s, %zu: %.*s\n", len > 40 ? 40 : (int)strnlen(key, len), key, len,
               label ? (int)strcspn(label + 12, "\n") : 4, label ? label + 12 : "none");
    kv = kv_free(kv);
}

/* What is no key of ours, and each byte of a run id, alone and escaped. */
static void say_keys(struct buf *out) {
    static const char value[] = "{\"inc\":\"00000000000000aa\",\"min\":5}";
    static const char *const keys[] = {"/rankrun/a/cur",
                                       "/rankrun/a/cu",
                                       "/rankrun/a/curs",
                                       "/rankrun/a/our",
                                       "rankrun/a/cur",
                                       "/rankrum/a/cur",
                                       "/rankrun//cur",
                                       "/rankrun/cur",
                                       "/rankrun/a/b/cur",
                                       "/rankrun/%/cur",
                                       "/rankrun/%4/cur",
                                       "/rankrun/%2f/cur",
                                       "/rankrun/%2F/cur",
                                       "/rankrun/%25/cur",
                                       "/rankrun/%41/cur",
                                       "/rankrun/%00/cur",
                                       "/rankrun/%zz/cur",
                                       "/rankrun/%2g/cur",
                                       "/rankrun/%g2/cur",
                                       "/rankrun/%2:/cur",
                                       "/rankrun/a%2fb/cur",
                                       "/rankrun/a%2/cur",
                                       "/rankrun/a%/cur",
                                       "/rankrun/quarantine",
                                       "/rankrun/a/head",
                                       "/cur",
                                       "cur",
                                       "/rankrun/",
                                       "/rankrun/%e4%f6/cur",
                                       "/rankrun/%fg/cur",
                                       "/rankrun/%2`/cur",
                                       "/rankrun/%//cur"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        say_key(out, keys[i], strlen(keys[i]), value);
    say_key(out, "/rankrun/a\0b/cur", 16, value);
    say_key(out, "/rankrun/a/cur", 14, "no json");
    say_key(out, "/rankrun/a/cur", 14, "{}");
    say_key(out, "/rankrun/a/cur", 14, "{\"min\":\"1\"}");
    for (int n = RUN_ID_MAX - 1; n <= RUN_ID_MAX + 1; n++)
        for (int escaped = 0; escaped < 2; escaped++) {
            BUF_FINI struct buf key = {0};
            buf_puts(&key, "/rankrun/");
            for (int i = 0; i < n; i++)
                buf_puts(&key, escaped ? "%2f" : "x");
            buf_puts(&key, "/cur");
            say_key(out, buf_str(&key), key.len, value);
        }
    for (int c = 1; c < 256; c++) {
        char key[32], escape[32];
        snprintf(key, sizeof(key), "/rankrun/%c/cur", c);
        snprintf(escape, sizeof(escape), "/rankrun/%%%02x/cur", c);
        if (c >= ' ' && c < 0x7f)
            say_key(out, key, strlen(key), value);
        say_key(out, escape, strlen(escape), value);
    }
}

static void say(struct buf *out) {
    say_store(out);
    say_counted(out);
    say_jobs(out);
    say_keys(out);
}

static void test_all_numbers_are_told_to_the_last_word(void **state) {
    (void)state;
    on_record_same(path, say, "the numbers of a store are told otherwise");
}

int main(int argc, char **argv) {
    const struct CMUnitTest test = cmocka_unit_test(test_all_numbers_are_told_to_the_last_word);
    return on_record_main(argc, argv, path, say, &test);
}
