#include "agent/store/metrics.h"

#include "agent/core/kv.h"
#include "agent/store/codec.h"
#include "base/arena.h"
#include "base/sys/tcp.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

static struct kv *kv;
static struct metrics counted;

static int set_up(void **state) {
    (void)state;
    kv = kv_new(1, 0);
    counted = (struct metrics){0};
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    kv = kv_free(kv);
    return 0;
}

static void put_text(const char *key, const char *value) {
    struct arena arena = {0};
    struct kv_txn_result r;
    struct kv_op op = {.kind = KV_PUT, .key = kv_string(key), .value = kv_string(value)};
    struct kv_txn txn = {.success = &op, .n_success = 1};
    assert_int_equal(kv_txn(kv, &txn, &arena, &r, NULL), KV_OK);
    arena_fini(&arena);
}

static void put_key(const char *run, struct store_key k, const union value *v) {
    char text[KEY_SIZE], end[KEY_SIZE];
    struct buf value = {0};
    strcpy(k.inc, k.kind == KEY_CUR ? "" : "00000000000000aa");
    key_format(&k, run, text, end);
    codec_put(&value, k.kind, v);
    put_text(text, buf_str(&value));
    buf_fini(&value);
}

static void put_job(const char *run, enum head_phase phase, enum head_outcome outcome) {
    union value cur = {.cur = {.inc = "00000000000000aa", .min = 1, .max = 4, .max_restarts = 3}};
    union value head = {
        .head = {
            .round = 7, .phase = phase, .n = 2, .world = 16, .restarts = 2, .outcome = outcome}};
    union value session = {.session = {.seq = 1}};
    struct store_key one = {.kind = KEY_SESSION, .uid = "0123456789abcdef0123456789abcdef"};
    struct store_key two = {.kind = KEY_SESSION, .uid = "1123456789abcdef0123456789abcdef"};
    put_key(run, (struct store_key){.kind = KEY_CUR}, &cur);
    put_key(run, (struct store_key){.kind = KEY_HEAD}, &head);
    put_key(run, one, &session);
    put_key(run, two, &session);
}

/* Each of the lines, NULL-ended, is there as a whole. */
static void expect(const char *const *lines) {
    struct buf out = {0};
    struct metrics_now now = {
        .connections = 5, .watches = 3, .lifelines = 2, .held = 77, .full = true};
    metrics_put(&out, &counted, &now, kv);
    for (; *lines; lines++) {
        char whole[256];
        snprintf(whole, sizeof(whole), "\n%s\n", *lines);
        if (!strstr(buf_str(&out), whole))
            fail_msg("\"%s\" is not in:\n%s", *lines, buf_str(&out));
    }
    buf_fini(&out);
}

static bool tells_of_a_job(void) {
    struct buf out = {0};
    metrics_put_jobs(&out, kv);
    bool tells = out.len > 0;
    buf_fini(&out);
    return tells;
}

static void test_the_store_is_told_by_what_it_holds_and_has_answered(void **state) {
    (void)state;
    put_text("a", "1");
    counted.received = 12345678901;
    counted.handshakes_failed = 4;
    metrics_count(&counted, "/v3/kv/txn", 200);
    metrics_count(&counted, "/v3/kv/txn", 200);
    metrics_count(&counted, "/v3/kv/txn", 412);
    metrics_count(&counted, "/v3/kv/txn/x", 404);
    metrics_count(&counted, "/metrics", 200);
    metrics_count(&counted, "", 503);
    expect((const char *const[]){
        "# TYPE rankrun_store_revision gauge", "rankrun_store_revision 2", "rankrun_store_keys 1",
        "rankrun_store_connections 5", "rankrun_store_watches 3", "rankrun_store_lifelines 2",
        "rankrun_store_held_bytes 77", "rankrun_store_full 1",
        "rankrun_store_handshakes_failed_total 4", "rankrun_store_received_bytes_total 12345678901",
        "# TYPE rankrun_store_requests_total counter",
        "rankrun_store_requests_total{kind=\"kv/txn\",code=\"200\"} 2",
        "rankrun_store_requests_total{kind=\"kv/txn\",code=\"412\"} 1",
        "rankrun_store_requests_total{kind=\"kv/put\",code=\"200\"} 0",
        "rankrun_store_requests_total{kind=\"other\",code=\"404\"} 1",
        "rankrun_store_requests_total{kind=\"other\",code=\"other\"} 1",
        "rankrun_store_requests_total{kind=\"metrics\",code=\"200\"} 1", NULL});
    assert_false(tells_of_a_job());
}

static void test_each_job_is_told_by_its_keys(void **state) {
    (void)state;
    put_job("a", HEAD_RUN, OUTCOME_NONE);
    put_job("b \"\\", HEAD_CLOSED, OUTCOME_FAILED);
    expect((const char *const[]){
        "rankrun_job_round{run_id=\"a\"} 7", "rankrun_job_world_size{run_id=\"a\"} 16",
        "rankrun_job_nodes{run_id=\"a\"} 2", "rankrun_job_nodes_min{run_id=\"a\"} 1",
        "rankrun_job_nodes_max{run_id=\"a\"} 4", "rankrun_job_agents{run_id=\"a\"} 2",
        "rankrun_job_restarts{run_id=\"a\"} 2", "rankrun_job_restarts_max{run_id=\"a\"} 3",
        "rankrun_job_phase{run_id=\"a\",phase=\"running\"} 1",
        "rankrun_job_phase{run_id=\"a\",phase=\"failed\"} 0",
        "rankrun_job_phase{run_id=\"b \\\"\\\\\",phase=\"running\"} 0",
        "rankrun_job_phase{run_id=\"b \\\"\\\\\",phase=\"failed\"} 1", NULL});
}

/* Anybody can write into a store. */
static void test_keys_that_are_none_of_a_job_are_told_as_keys_alone(void **state) {
    (void)state;
    static const char *const keys[] = {"/rankrun//cur",
                                       "/rankrun/cur",
                                       "/rankrun/%/cur",
                                       "/rankrun/%zz/cur",
                                       "/rankrun/%00/cur",
                                       "/rankrun/a/b/cur",
                                       "/rankrun/quarantine",
                                       "cur",
                                       "/cur",
                                       NULL};
    for (const char *const *k = keys; *k; k++)
        put_text(*k, "{\"inc\":\"00000000000000aa\"}");
    put_text("/rankrun/a/cur", "no json");
    put_text("/rankrun/c/cur", "{\"inc\":\"" /* longer than one can be */
                               "000000000000000000000000000000000000000000000000\"}");
    assert_false(tells_of_a_job());
    put_job("many", HEAD_RUN, OUTCOME_NONE);
    for (int i = 0; i < 1000; i++) {
        char key[64];
        snprintf(key, sizeof(key), "/rankrun/many%d/cur", i);
        put_text(key, "{\"inc\":\"00000000000000aa\",\"min\":1,\"max\":1}");
    }
    assert_true(tells_of_a_job());
}

static size_t count_lines(const char *text, const char *with) {
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, with)); p++)
        n++;
    return n;
}

/* Of one more than there may be the last is left out, of each number. */
static void test_so_many_jobs_are_told_of(void **state) {
    (void)state;
    for (size_t n = 0; n <= 258; n++) {
        struct buf out = {0};
        size_t told = n < 256 ? n : 256;
        char key[64];
        if (n > 1 && n < 254) { /* all of them are written, and looked at in the end */
            snprintf(key, sizeof(key), "/rankrun/j%03zu/cur", n);
            put_text(key, "{\"inc\":\"00000000000000aa\",\"min\":1,\"max\":1}");
            continue;
        }
        if (n) {
            snprintf(key, sizeof(key), "/rankrun/j%03zu/cur", n);
            put_text(key, "{\"inc\":\"00000000000000aa\",\"min\":1,\"max\":1}");
        }
        metrics_put_jobs(&out, kv);
        assert_int_equal(count_lines(buf_str(&out), "\nrankrun_job_nodes_min{run_id=\"j"), told);
        assert_int_equal(count_lines(buf_str(&out), "\nrankrun_job_phase{run_id=\"j"), 6 * told);
        assert_int_equal(count_lines(buf_str(&out), "j256\""), n >= 256 ? 14 : 0);
        assert_int_equal(count_lines(buf_str(&out), "j257\""), 0);
        buf_fini(&out);
    }
}

static void test_connections_are_counted_as_the_kernel_has_them(void **state) {
    (void)state;
    struct tcp_endpoint e = {.host = "127.0.0.1"};
    struct tcp_address to;
    int listener, client = -1;
    assert_int_equal(tcp_listen("127.0.0.1", 0, 4, &listener, &e.port, NULL), 0);
    assert_int_equal(tcp_resolve(&e, &to, 1, NULL), 1);
    assert_int_equal(tcp_connect(&to, &client), 0);
    assert_int_equal(tcp_count_connections(e.port), 0);
    struct pollfd ready = {.fd = listener, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, 30000), 1);
    int taken = accept(listener, NULL, NULL);
    assert_true(taken >= 0);
    assert_int_equal(tcp_count_connections(e.port), 1);
    close(taken);
    close(client);
    close(listener);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_store_is_told_by_what_it_holds_and_has_answered,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_each_job_is_told_by_its_keys, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_keys_that_are_none_of_a_job_are_told_as_keys_alone,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_so_many_jobs_are_told_of, set_up, tear_down),
        cmocka_unit_test(test_connections_are_counted_as_the_kernel_has_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
