/* What is shown without a copy, what a request costs, and many deletions and leases at once. */
#include "agent/core/kv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct kv *kv;
static struct arena arena;

static int set_up(void **state) {
    (void)state;
    kv = kv_new(1, 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    kv = kv_free(kv);
    arena_fini(&arena);
    return 0;
}

static struct kv_txn_result apply(struct kv_op op) {
    struct kv_txn_result r;
    struct kv_txn txn = {.success = &op, .n_success = 1};
    assert_int_equal(kv_txn(kv, &txn, &arena, &r, NULL), 0);
    return r;
}

static void put(const char *key, const char *value, int64_t lease) {
    apply((struct kv_op){
        .kind = KV_PUT, .key = kv_string(key), .value = kv_string(value), .lease = lease});
}

static const struct kv_op everything = {.key = {"\0", 1}, .range_end = {"\0", 1}};

static struct kv_op all(enum kv_op_kind kind) {
    struct kv_op op = everything;
    op.kind = kind;
    return op;
}

static void test_what_is_held_is_as_it_was_when_it_was_asked_for(void **state) {
    (void)state;
    struct kv_hold hold = {0};
    struct kv_txn_result r;
    struct kv_op op = all(KV_RANGE);
    struct kv_txn txn = {.success = &op, .n_success = 1};
    put("a", "1", 0);
    put("b", "2", 0);
    assert_int_equal(kv_txn_hold(kv, &txn, &arena, &hold, &r, NULL), 0);
    put("a", "9", 0);
    apply(all(KV_DELETE));
    kv_compact(kv, kv_revision(kv), NULL);
    assert_int_equal(r.results[0].n_pairs, 2);
    struct kv_pair a = kv_result_pair(&r.results[0], 0), b = kv_result_pair(&r.results[0], 1);
    assert_memory_equal(a.value.data, "1", 1);
    assert_memory_equal(b.key.data, "b", 1);
    assert_int_equal(b.mod_revision, 3);
    size_t with = kv_memory(kv);
    kv_release(kv, &hold);
    assert_true(kv_memory(kv) < with);
    assert_int_equal(hold.n, 0);
}

static void test_what_is_held_has_no_values_where_only_keys_are_asked_for(void **state) {
    (void)state;
    struct kv_hold hold = {0};
    struct kv_txn_result r;
    struct kv_op op = all(KV_RANGE);
    op.keys_only = true;
    struct kv_txn txn = {.success = &op, .n_success = 1};
    put("a", "1", 0);
    assert_int_equal(kv_txn_hold(kv, &txn, &arena, &hold, &r, NULL), 0);
    assert_int_equal(kv_result_pair(&r.results[0], 0).value.len, 0);
    kv_release(kv, &hold);
}

static void test_the_cost_is_what_would_be_looked_at(void **state) {
    (void)state;
    struct kv_op op = all(KV_RANGE);
    struct kv_txn txn = {.success = &op, .n_success = 1};
    for (int i = 0; i < 100; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%03d", i);
        put(key, "", 0);
    }
    assert_in_range(kv_txn_cost(kv, &txn), 100, 102);
    op.limit = 10;
    assert_in_range(kv_txn_cost(kv, &txn), 10, 12);
    op.limit = 0;
    op.count_only = true;
    assert_in_range(kv_txn_cost(kv, &txn), 1, 2);
    struct kv_compare compare = {.key = everything.key, .range_end = everything.range_end};
    txn.compares = &compare;
    txn.n_compares = 1;
    assert_in_range(kv_txn_cost(kv, &txn), 100, 104);
}

static void test_keys_that_are_deleted_at_once_leave_the_others_in_order(void **state) {
    (void)state;
    static const char *const keys[] = {"a", "b1", "b2", "b3", "c"};
    for (size_t i = 0; i < 5; i++)
        put(keys[i], "", 0);
    struct kv_watch *w = kv_watch_new(kv, kv_string("b"), kv_string("c"), 0, NULL);
    struct kv_op op = {.kind = KV_DELETE, .key = kv_string("b"), .range_end = kv_string("c")};
    assert_int_equal(apply(op).results[0].count, 3);
    struct kv_op_result left = apply(all(KV_RANGE)).results[0];
    assert_int_equal(left.n_pairs, 2);
    assert_memory_equal(left.pairs[0].key.data, "a", 1);
    assert_memory_equal(left.pairs[1].key.data, "c", 1);
    struct kv_event *events;
    size_t n;
    assert_int_equal(kv_watch_take(w, 0, &arena, &events, &n), 0);
    assert_int_equal(n, 3);
    assert_memory_equal(events[2].pair.key.data, "b3", 2);
    kv_watch_free(w);
}

static void test_leases_that_end_together_take_a_revision_each(void **state) {
    (void)state;
    int64_t id;
    for (int i = 1; i <= 3; i++)
        assert_int_equal(kv_lease_grant(kv, i, 1, 0, &id, NULL), 0);
    put("c", "", 1);
    put("a", "", 1);
    put("b", "", 2);
    put("z", "", 0);
    int64_t before = kv_revision(kv);
    assert_int_equal(kv_lease_expire(kv, 1000000000), INT64_MAX);
    assert_int_equal(kv_revision(kv), before + 2);
    assert_int_equal(kv_count(kv), 1);
}

static bool is_spared(struct kv_bytes key) {
    return key.data[0] == 'r';
}

static void
test_of_leases_those_go_that_were_kept_alive_longest_ago_and_hold_nothing(void **state) {
    (void)state;
    int64_t id, ttl_s;
    for (int i = 1; i <= 4; i++)
        assert_int_equal(kv_lease_grant(kv, i, 600, i, &id, NULL), 0);
    put("run", "", 1);
    put("other", "", 2);
    assert_int_equal(kv_lease_keepalive(kv, 3, 100, &ttl_s, NULL), 0);
    assert_int_equal(kv_lease_drop(kv, 2, is_spared), 2);
    assert_true(kv_lease_exists(kv, 1));
    assert_true(kv_lease_exists(kv, 3));
    assert_int_equal(kv_lease_count(kv), 2);
    assert_int_equal(kv_count(kv), 1);
    assert_int_equal(kv_lease_drop(kv, 5, is_spared), 1);
}

static void test_a_watch_that_is_behind_what_is_compacted_is_lost_and_holds_nothing(void **state) {
    (void)state;
    static char big[100000];
    struct kv_watch *w = kv_watch_new(kv, kv_string("a"), kv_string("b"), 0, NULL);
    struct kv_op op = {.kind = KV_PUT, .key = kv_string("a"), .value = {big, sizeof(big)}};
    for (int i = 0; i < 10; i++)
        apply(op);
    assert_false(kv_watch_is_lost(w));
    int64_t from = kv_history_from(kv, 3 * sizeof(big));
    assert_int_equal(from, kv_revision(kv) - 1);
    assert_int_equal(kv_compact(kv, from, NULL), 0);
    assert_true(kv_watch_is_lost(w));
    assert_true(kv_memory(kv) < 3 * sizeof(big));
    kv_watch_free(w);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_held_is_as_it_was_when_it_was_asked_for),
        TEST(test_what_is_held_has_no_values_where_only_keys_are_asked_for),
        TEST(test_the_cost_is_what_would_be_looked_at),
        TEST(test_keys_that_are_deleted_at_once_leave_the_others_in_order),
        TEST(test_leases_that_end_together_take_a_revision_each),
        TEST(test_of_leases_those_go_that_were_kept_alive_longest_ago_and_hold_nothing),
        TEST(test_a_watch_that_is_behind_what_is_compacted_is_lost_and_holds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
