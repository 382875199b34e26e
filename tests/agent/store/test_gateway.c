/* The wire format, against lines recorded from etcd 3.4.23. */
#include "agent/store/gateway.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HEADER                                                                                     \
    "{\"cluster_id\":\"14841639068965178418\",\"member_id\":\"10276657743932975437\","             \
    "\"revision\":\"4\",\"raft_term\":\"2\"}"

static struct arena arena;

static int tear_down(void **state) {
    (void)state;
    arena_fini(&arena);
    return 0;
}

static void bytes_equal(struct kv_bytes b, const char *text) {
    assert_int_equal(b.len, strlen(text));
    assert_memory_equal(b.data, text, b.len);
}

static struct kv_txn_result take(const char *text) {
    struct kv_txn_result r = {0};
    struct err err = {0};
    int rc = gateway_take_txn_result(&arena, text, strlen(text), &r, &err);
    assert_string_equal(err.msg, "");
    assert_int_equal(rc, 0);
    return r;
}

static void test_an_answer_of_etcd_to_a_transaction_is_read(void **state) {
    (void)state;
    struct kv_txn_result r = take(
        "{\"header\":" HEADER ",\"succeeded\":true,\"responses\":["
        "{\"response_put\":{\"header\":{\"revision\":\"4\"}}},"
        "{\"response_range\":{\"header\":{\"revision\":\"4\"},\"kvs\":[{\"key\":\"YS8x\","
        "\"create_revision\":\"4\",\"mod_revision\":\"5\",\"version\":\"2\",\"value\":\"eQ==\","
        "\"lease\":\"7587899064254154508\"}],\"count\":\"1\"}},"
        "{\"response_delete_range\":{\"header\":{\"revision\":\"4\"},\"deleted\":\"3\"}}]}");
    assert_true(r.succeeded);
    assert_int_equal(r.revision, 4);
    assert_int_equal(r.n_results, 3);
    assert_int_equal(r.results[0].kind, KV_PUT);
    assert_int_equal(r.results[1].kind, KV_RANGE);
    assert_int_equal(r.results[1].n_pairs, 1);
    bytes_equal(r.results[1].pairs[0].key, "a/1");
    bytes_equal(r.results[1].pairs[0].value, "y");
    assert_int_equal(r.results[1].pairs[0].create_revision, 4);
    assert_int_equal(r.results[1].pairs[0].mod_revision, 5);
    assert_int_equal(r.results[1].pairs[0].version, 2);
    assert_int_equal(r.results[1].pairs[0].lease, 7587899064254154508);
    assert_int_equal(r.results[2].kind, KV_DELETE);
    assert_int_equal(r.results[2].count, 3);
}

static void test_absent_fields_are_zero(void **state) {
    (void)state;
    struct kv_txn_result r = take("{\"header\":" HEADER ",\"responses\":[{\"response_range\":"
                                  "{\"header\":{\"revision\":\"4\"}}}]}");
    assert_false(r.succeeded);
    assert_int_equal(r.results[0].n_pairs, 0);
    assert_int_equal(r.results[0].count, 0);
    assert_int_equal(take("{\"header\":" HEADER "}").n_results, 0);
}

static void test_the_lines_of_a_watch_are_read(void **state) {
    (void)state;
    struct gateway_line l;
    static const char created[] = "{\"result\":{\"header\":" HEADER ",\"created\":true}}";
    static const char events[] =
        "{\"result\":{\"header\":" HEADER ",\"events\":[{\"kv\":{\"key\":\"YS8x\","
        "\"create_revision\":\"2\",\"mod_revision\":\"2\",\"version\":\"1\",\"value\":\"eA==\"}},"
        "{\"type\":\"DELETE\",\"kv\":{\"key\":\"YS8x\",\"mod_revision\":\"3\"}}]}}";
    static const char canceled[] =
        "{\"result\":{\"header\":{\"cluster_id\":\"1\",\"raft_term\":\"2\"},\"canceled\":true,"
        "\"compact_revision\":\"4\"}}";
    assert_int_equal(gateway_take_line(&arena, created, strlen(created), &l, NULL), 0);
    assert_true(l.created && !l.canceled && !l.n_events);
    assert_int_equal(gateway_take_line(&arena, events, strlen(events), &l, NULL), 0);
    assert_int_equal(l.n_events, 2);
    assert_false(l.events[0].deleted);
    bytes_equal(l.events[0].pair.value, "x");
    assert_true(l.events[1].deleted);
    bytes_equal(l.events[1].pair.key, "a/1");
    assert_int_equal(l.events[1].pair.mod_revision, 3);
    assert_int_equal(gateway_take_line(&arena, canceled, strlen(canceled), &l, NULL), 0);
    assert_true(l.canceled);
    assert_int_equal(l.compact_revision, 4);
}

static void test_leases_and_errors_are_read(void **state) {
    (void)state;
    struct gateway_lease l;
    static const char grant[] = "{\"header\":" HEADER ",\"ID\":\"75\",\"TTL\":\"2\"}";
    static const char alive[] =
        "{\"result\":{\"header\":" HEADER ",\"ID\":\"5\",\"TTL\":\"60\"}}\n";
    static const char gone[] = "{\"result\":{\"header\":" HEADER ",\"ID\":\"1234\"}}\n";
    static const char error[] = "{\"error\":\"etcdserver: lease already exists\","
                                "\"message\":\"etcdserver: lease already exists\",\"code\":9}";
    static const char stream[] = "{\"error\":{\"grpc_code\":14,\"http_code\":503,\"message\":"
                                 "\"etcdserver: no leader\",\"http_status\":\"x\"}}";
    assert_int_equal(gateway_take_lease_answer(&arena, grant, strlen(grant), &l, NULL), 0);
    assert_true(l.id == 75 && l.ttl_s == 2);
    assert_int_equal(gateway_take_lease_answer(&arena, alive, strlen(alive), &l, NULL), 0);
    assert_true(l.id == 5 && l.ttl_s == 60);
    assert_int_equal(gateway_take_lease_answer(&arena, gone, strlen(gone), &l, NULL), 0);
    assert_true(l.id == 1234 && l.ttl_s == 0);
    assert_string_equal(gateway_take_error(&arena, error, strlen(error)),
                        "etcdserver: lease already exists");
    assert_string_equal(gateway_take_error(&arena, stream, strlen(stream)),
                        "etcdserver: no leader");
    assert_null(gateway_take_error(&arena, "<html>", 6));
}

static void test_a_transaction_is_written_as_etcd_wants_it(void **state) {
    (void)state;
    struct kv_compare compares[] = {{.target = KV_VERSION, .key = kv_string("a/1")},
                                    {.target = KV_MOD,
                                     .relation = KV_LESS,
                                     .key = kv_string("a/"),
                                     .range_end = kv_string("a0"),
                                     .number = 3}};
    struct kv_op put = {
        .kind = KV_PUT, .key = kv_string("a/1"), .value = kv_string("y"), .lease = 7};
    struct kv_op range = {.kind = KV_RANGE, .key = kv_string("a/1")};
    struct kv_txn txn = {compares, 2, &put, &range, 1, 1};
    struct buf out = {0};
    gateway_put_txn(&out, &txn);
    assert_string_equal(
        buf_str(&out),
        "{\"compare\":[{\"target\":\"VERSION\",\"result\":\"EQUAL\",\"key\":\"YS8x\",\"version\":"
        "\"0\"},{\"target\":\"MOD\",\"result\":\"LESS\",\"key\":\"YS8=\",\"range_end\":\"YTA=\","
        "\"mod_revision\":\"3\"}],\"success\":[{\"request_put\":{\"key\":\"YS8x\",\"value\":"
        "\"eQ==\",\"lease\":\"7\"}}],\"failure\":[{\"request_range\":{\"key\":\"YS8x\"}}]}");
    buf_fini(&out);
}

/* What one half writes the other reads: for every field there is. */
static void test_a_request_comes_back_whole(void **state) {
    (void)state;
    struct kv_compare c[5];
    struct kv_op ops[3] = {
        {.kind = KV_RANGE,
         .key = kv_string("k"),
         .range_end = kv_string("z"),
         .limit = 5,
         .revision = 6,
         .keys_only = true,
         .count_only = true},
        {.kind = KV_PUT, .key = {"\0\xff", 2}, .value = {"\n", 1}, .lease = -1, .prev_kv = true},
        {.kind = KV_DELETE, .key = kv_string("d"), .range_end = {"", 1}},
    };
    for (int i = 0; i < 5; i++)
        c[i] = (struct kv_compare){.target = (enum kv_target)i,
                                   .relation = (enum kv_relation)(i % 4),
                                   .key = kv_string("key"),
                                   .range_end = kv_string(i % 2 ? "kez" : ""),
                                   .number = i == KV_VALUE ? 0 : 1LL << (12 * i),
                                   .value = kv_string(i == KV_VALUE ? "v" : "")};
    struct kv_txn txn = {c, 5, ops, ops + 1, 3, 2}, back;
    struct buf out = {0}, again = {0};
    gateway_put_txn(&out, &txn);
    assert_int_equal(gateway_take_txn(&arena, out.data, out.len, &back, NULL), 0);
    assert_int_equal(back.n_success, 3);
    assert_int_equal(back.n_failure, 2);
    assert_int_equal(back.compares[4].number, 1LL << 48);
    assert_memory_equal(back.success[1].key.data, "\0\xff", 2);
    assert_int_equal(back.success[2].range_end.len, 1);
    gateway_put_txn(&again, &back);
    assert_string_equal(buf_str(&out), buf_str(&again));
    buf_fini(&out);
    buf_fini(&again);
}

/* Cut anywhere, and with any byte changed, a message is refused or read as something else; never
 * more than that (asan watches). */
static void test_damaged_messages_do_no_harm(void **state) {
    (void)state;
    char text[] = "{\"compare\":[{\"target\":\"VALUE\",\"key\":\"YS8x\",\"value\":\"eQ==\"}],"
                  "\"success\":[{\"request_put\":{\"key\":\"YS8x\",\"value\":\"eQ==\"}}]}";
    struct kv_txn txn;
    struct kv_txn_result result;
    struct gateway_line line;
    struct err err;
    for (size_t n = 0; n < strlen(text); n++)
        assert_int_equal(gateway_take_txn(&arena, text, n, &txn, &err), -EPROTO);
    for (size_t i = 0; i < strlen(text); i++) {
        static const char bad[] = {0, '"', '{', ']', ',', '9', '\\', (char)0xff};
        char was = text[i];
        for (size_t k = 0; k < sizeof(bad); k++) {
            text[i] = bad[k];
            gateway_take_txn(&arena, text, strlen(text), &txn, &err);
            gateway_take_txn_result(&arena, text, strlen(text), &result, &err);
            gateway_take_line(&arena, text, strlen(text), &line, &err);
        }
        text[i] = was;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_of_etcd_to_a_transaction_is_read),
        cmocka_unit_test(test_absent_fields_are_zero),
        cmocka_unit_test(test_the_lines_of_a_watch_are_read),
        cmocka_unit_test(test_leases_and_errors_are_read),
        cmocka_unit_test(test_a_transaction_is_written_as_etcd_wants_it),
        cmocka_unit_test(test_a_request_comes_back_whole),
        cmocka_unit_test(test_damaged_messages_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
