#include "agent/core/kv.h"

#include "base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

struct fixture {
    struct kv *kv;
    struct arena arena;
};

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof(*f));
    f->kv = kv_new(1, 0);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    kv_free(f->kv);
    arena_fini(&f->arena);
    free(f);
    return 0;
}

static struct kv_op op_put(const char *key, const char *value) {
    return (struct kv_op){.kind = KV_PUT, .key = kv_string(key), .value = kv_string(value)};
}

static struct kv_op op_delete(const char *key, const char *end) {
    return (struct kv_op){.kind = KV_DELETE, .key = kv_string(key), .range_end = kv_string(end)};
}

static struct kv_op op_range(const char *key, const char *end) {
    return (struct kv_op){.kind = KV_RANGE, .key = kv_string(key), .range_end = kv_string(end)};
}

static struct kv_compare cmp(const char *key, enum kv_target t, enum kv_relation rel, int64_t n) {
    return (struct kv_compare){.target = t, .relation = rel, .key = kv_string(key), .number = n};
}

static int apply(struct fixture *f, const struct kv_compare *c, size_t n_c, const struct kv_op *ops,
                 size_t n, struct kv_txn_result *ret) {
    struct kv_txn txn = {.compares = c, .n_compares = n_c, .success = ops, .n_success = n};
    return kv_txn(f->kv, &txn, &f->arena, ret, NULL);
}

static int64_t put(struct fixture *f, const char *key, const char *value) {
    struct kv_txn_result r = {0};
    struct kv_op op = op_put(key, value);
    assert_int_equal(apply(f, NULL, 0, &op, 1, &r), 0);
    return r.revision;
}

static bool holds(struct fixture *f, struct kv_compare c) {
    struct kv_txn_result r = {0};
    assert_int_equal(apply(f, &c, 1, NULL, 0, &r), 0);
    return r.succeeded;
}

static struct kv_op_result get(struct fixture *f, const char *key, const char *end) {
    struct kv_txn_result r = {0};
    struct kv_op op = op_range(key, end);
    assert_int_equal(apply(f, NULL, 0, &op, 1, &r), 0);
    return r.results[0];
}

static void test_an_empty_store_is_at_revision_one_and_a_put_makes_two(void **state) {
    struct fixture *f = *state;
    assert_int_equal(kv_revision(f->kv), 1);
    assert_int_equal(put(f, "a", "1"), 2);
    assert_int_equal(put(f, "a", "2"), 3);
    struct kv_op_result r = get(f, "a", "");
    assert_int_equal(r.count, 1);
    assert_int_equal(r.pairs[0].create_revision, 2);
    assert_int_equal(r.pairs[0].mod_revision, 3);
    assert_int_equal(r.pairs[0].version, 2);
    assert_memory_equal(r.pairs[0].value.data, "2", 1);
}

static void test_a_key_deleted_and_put_again_begins_a_new_life(void **state) {
    struct fixture *f = *state;
    put(f, "a", "1");
    struct kv_op op = op_delete("a", "");
    struct kv_txn_result r = {0};
    assert_int_equal(apply(f, NULL, 0, &op, 1, &r), 0);
    assert_int_equal(r.results[0].count, 1);
    assert_int_equal(put(f, "a", "2"), 4);
    assert_int_equal(get(f, "a", "").pairs[0].create_revision, 4);
    assert_int_equal(get(f, "a", "").pairs[0].version, 1);
}

static void test_deleting_nothing_makes_no_revision(void **state) {
    struct fixture *f = *state;
    struct kv_op op = op_delete("a", "");
    struct kv_txn_result r = {0};
    assert_int_equal(apply(f, NULL, 0, &op, 1, &r), 0);
    assert_int_equal(r.revision, 1);
}

static void test_one_transaction_is_one_revision_and_sees_its_own_puts(void **state) {
    struct fixture *f = *state;
    struct kv_op ops[] = {op_put("a", "1"), op_put("b", "2"), op_range("a", "c")};
    struct kv_txn_result r = {0};
    assert_int_equal(apply(f, NULL, 0, ops, 3, &r), 0);
    assert_int_equal(r.revision, 2);
    assert_int_equal(r.results[2].count, 2);
    assert_int_equal(r.results[2].pairs[1].mod_revision, 2);
}

static void test_ranges_are_by_key_and_know_prefix_limit_and_everything(void **state) {
    struct fixture *f = *state;
    put(f, "b/2", "");
    put(f, "b/1", "");
    put(f, "a", "");
    put(f, "c", "");
    char end[8];
    struct kv_bytes b = kv_prefix_end(kv_string("b/"), end);
    struct kv_op op = {.kind = KV_RANGE, .key = kv_string("b/"), .range_end = b, .limit = 1};
    struct kv_txn_result r = {0};
    assert_int_equal(apply(f, NULL, 0, &op, 1, &r), 0);
    assert_int_equal(r.results[0].count, 2);
    assert_int_equal(r.results[0].n_pairs, 1);
    assert_true(r.results[0].more);
    assert_memory_equal(r.results[0].pairs[0].key.data, "b/1", 3);
    op.range_end = (struct kv_bytes){"\0", 1};
    op.limit = 0;
    assert_int_equal(apply(f, NULL, 0, &op, 1, &r), 0);
    assert_int_equal(r.results[0].n_pairs, 3);
}

static void test_a_prefix_of_ff_ends_at_the_end_of_everything(void **state) {
    (void)state;
    char end[4];
    struct kv_bytes e = kv_prefix_end((struct kv_bytes){"a\xff", 2}, end);
    assert_int_equal(e.len, 1);
    assert_int_equal(e.data[0], 'b');
    e = kv_prefix_end((struct kv_bytes){"\xff", 1}, end);
    assert_int_equal(e.len, 1);
    assert_int_equal(e.data[0], 0);
}

static void test_compares_know_every_target_and_relation(void **state) {
    struct fixture *f = *state;
    put(f, "a", "1");
    put(f, "a", "2");
    assert_true(holds(f, cmp("a", KV_VERSION, KV_EQUAL, 2)));
    assert_false(holds(f, cmp("a", KV_VERSION, KV_NOT_EQUAL, 2)));
    assert_true(holds(f, cmp("a", KV_CREATE, KV_LESS, 3)));
    assert_true(holds(f, cmp("a", KV_MOD, KV_GREATER, 2)));
    assert_false(holds(f, cmp("a", KV_MOD, KV_GREATER, 3)));
    assert_true(holds(f, cmp("a", KV_LEASE, KV_EQUAL, 0)));
    struct kv_compare v = {.target = KV_VALUE, .key = kv_string("a"), .value = kv_string("2")};
    assert_true(holds(f, v));
    v.value = kv_string("1");
    assert_false(holds(f, v));
    v.relation = KV_GREATER;
    assert_true(holds(f, v));
}

static void test_an_absent_key_compares_as_zero_but_has_no_value(void **state) {
    struct fixture *f = *state;
    assert_true(holds(f, cmp("a", KV_VERSION, KV_EQUAL, 0)));
    assert_true(holds(f, cmp("a", KV_MOD, KV_LESS, 1)));
    assert_false(holds(f, cmp("a", KV_CREATE, KV_GREATER, 0)));
    struct kv_compare v = {.target = KV_VALUE, .key = kv_string("a"), .value = kv_string("")};
    assert_false(holds(f, v));
    v.relation = KV_NOT_EQUAL;
    assert_false(holds(f, v));
}

static void test_a_range_compare_asks_every_key_and_holds_for_none(void **state) {
    struct fixture *f = *state;
    struct kv_compare none = cmp("done/", KV_VERSION, KV_EQUAL, 0);
    none.range_end = kv_string("done0");
    assert_true(holds(f, none));
    put(f, "done/1", "");
    assert_false(holds(f, none));
    struct kv_compare newer = cmp("done/", KV_MOD, KV_LESS, 3);
    newer.range_end = kv_string("done0");
    assert_true(holds(f, newer));
    put(f, "done/2", "");
    assert_false(holds(f, newer));
}

static void test_a_failed_compare_takes_the_other_branch_whole(void **state) {
    struct fixture *f = *state;
    struct kv_compare c = cmp("a", KV_VERSION, KV_EQUAL, 1);
    struct kv_op yes = op_put("yes", ""), no[] = {op_put("no", ""), op_range("no", "")};
    struct kv_txn txn = {.compares = &c, .n_compares = 1, .success = &yes, .n_success = 1};
    txn.failure = no;
    txn.n_failure = 2;
    struct kv_txn_result r = {0};
    assert_int_equal(kv_txn(f->kv, &txn, &f->arena, &r, NULL), 0);
    assert_false(r.succeeded);
    assert_int_equal(r.n_results, 2);
    assert_int_equal(get(f, "yes", "").count, 0);
    assert_int_equal(r.results[1].count, 1);
}

static void test_what_etcd_refuses_is_refused_in_its_words(void **state) {
    struct fixture *f = *state;
    struct kv_txn_result r = {0};
    struct err err = {0};
    struct kv_op many[129];
    char keys[129][16];
    for (int i = 0; i < 129; i++) {
        snprintf(keys[i], sizeof(keys[i]), "k%d", i);
        many[i] = op_put(keys[i], "");
    }
    assert_int_equal(apply(f, NULL, 0, many, 128, &r), 0);
    struct kv_txn txn = {.success = many, .n_success = 129};
    assert_int_equal(kv_txn(f->kv, &txn, &f->arena, &r, &err), KV_TOO_MANY_OPS);
    assert_string_equal(err.msg, "etcdserver: too many operations in txn request");
    struct kv_op twice[] = {op_put("a", "1"), op_put("a", "2")};
    assert_int_equal(apply(f, NULL, 0, twice, 2, &r), KV_DUPLICATE_KEY);
    struct kv_op both[] = {op_delete("a", "b"), op_put("aa", "2")};
    assert_int_equal(apply(f, NULL, 0, both, 2, &r), KV_DUPLICATE_KEY);
    struct kv_op empty = op_put("", "1");
    assert_int_equal(apply(f, NULL, 0, &empty, 1, &r), KV_EMPTY_KEY);
    struct kv_op leased = op_put("x", "1");
    leased.lease = 77;
    assert_int_equal(apply(f, NULL, 0, &leased, 1, &r), KV_LEASE_NOT_FOUND);
    char *big = calloc(1, 1600 * 1024);
    struct kv_op large = {.kind = KV_PUT, .key = kv_string("x"), .value = {big, 1600 * 1024}};
    assert_int_equal(apply(f, NULL, 0, &large, 1, &r), KV_TOO_LARGE);
    free(big);
    struct kv_op old = op_range("a", "");
    old.revision = 1;
    assert_int_equal(apply(f, NULL, 0, &old, 1, &r), KV_COMPACTED);
    old.revision = 99;
    assert_int_equal(apply(f, NULL, 0, &old, 1, &r), KV_FUTURE_REVISION);
    assert_int_equal(kv_revision(f->kv), 2);
}

static void test_compares_are_refused_as_operations_are(void **state) {
    struct fixture *f = *state;
    struct kv_txn_result r = {0};
    struct kv_compare many[KV_OPS_MAX + 1];
    for (int i = 0; i <= KV_OPS_MAX; i++)
        many[i] = cmp("a", KV_VERSION, KV_EQUAL, 0);
    assert_int_equal(apply(f, many, KV_OPS_MAX, NULL, 0, &r), 0);
    assert_int_equal(apply(f, many, KV_OPS_MAX + 1, NULL, 0, &r), KV_TOO_MANY_OPS);
    many[1].key = kv_string("");
    assert_int_equal(apply(f, many, 2, NULL, 0, &r), KV_EMPTY_KEY);
    assert_string_equal(kv_text(KV_OK), "ok");
    assert_string_equal(kv_text(-99), "etcdserver: unknown error");
}

/* Also of the newest revision, by its number, and with room for more than there is. */
static void test_what_was_there_before_is_returned_where_it_is_asked_for(void **state) {
    struct fixture *f = *state;
    struct kv_txn_result r = {0};
    put(f, "a", "1");
    struct kv_op ops[] = {op_put("a", ""), op_delete("b", "c")};
    ops[0].prev_kv = ops[1].prev_kv = true;
    assert_int_equal(apply(f, NULL, 0, &ops[1], 1, &r), 0);
    assert_int_equal(r.results[0].n_pairs, 0);
    put(f, "b", "2");
    assert_int_equal(apply(f, NULL, 0, ops, 2, &r), 0);
    assert_memory_equal(r.results[0].pairs[0].value.data, "1", 1);
    assert_memory_equal(r.results[1].pairs[0].value.data, "2", 1);
    assert_int_equal(r.results[1].n_pairs, 1);
    struct kv_op range = op_range("a", "z");
    range.keys_only = true;
    range.limit = 5;
    range.revision = kv_revision(f->kv);
    assert_int_equal(apply(f, NULL, 0, &range, 1, &r), 0);
    assert_int_equal(r.results[0].n_pairs, 1);
    assert_false(r.results[0].more);
    assert_int_equal(r.results[0].pairs[0].value.len, 0);
    struct kv_compare empty = cmp("a", KV_VALUE, KV_EQUAL, 0);
    assert_true(holds(f, empty));
}

static void test_a_refused_transaction_changes_nothing(void **state) {
    struct fixture *f = *state;
    struct kv_txn_result r = {0};
    struct kv_op ops[] = {op_put("a", "1"), op_put("b", "1")};
    ops[1].lease = 5;
    assert_int_equal(apply(f, NULL, 0, ops, 2, &r), KV_LEASE_NOT_FOUND);
    assert_int_equal(get(f, "a", "").count, 0);
}

static void test_a_lease_that_ends_takes_its_keys_in_one_revision(void **state) {
    struct fixture *f = *state;
    int64_t id = 0, ttl = 0;
    assert_int_equal(kv_lease_grant(f->kv, 0, 10, 0, &id, NULL), 0);
    struct kv_txn_result r = {0};
    struct kv_op ops[] = {op_put("a", "1"), op_put("b", "1"), op_put("c", "1")};
    ops[0].lease = ops[1].lease = id;
    assert_int_equal(apply(f, NULL, 0, ops, 3, &r), 0);
    assert_int_equal(kv_lease_expire(f->kv, 9999999999), 10000000000);
    assert_int_equal(kv_lease_keepalive(f->kv, id, 5000000000, &ttl, NULL), 0);
    assert_int_equal(ttl, 10);
    assert_int_equal(kv_lease_expire(f->kv, 14999999999), 15000000000);
    assert_int_equal(kv_count(f->kv), 3);
    assert_int_equal(kv_lease_expire(f->kv, 15000000000), INT64_MAX);
    assert_int_equal(kv_count(f->kv), 1);
    assert_int_equal(kv_revision(f->kv), 3);
    assert_int_equal(kv_lease_keepalive(f->kv, id, 0, &ttl, NULL), KV_LEASE_NOT_FOUND);
}

static void test_a_lease_id_is_granted_once(void **state) {
    struct fixture *f = *state;
    int64_t id = 0;
    assert_int_equal(kv_lease_grant(f->kv, 7, 10, 0, &id, NULL), 0);
    assert_int_equal(id, 7);
    assert_int_equal(kv_lease_grant(f->kv, 7, 10, 0, &id, NULL), KV_LEASE_EXISTS);
    assert_int_equal(kv_lease_grant(f->kv, 8, 99000000, 0, &id, NULL), KV_LEASE_TTL_TOO_LARGE);
    assert_int_equal(kv_lease_revoke(f->kv, 7, NULL), 0);
    assert_int_equal(kv_lease_revoke(f->kv, 7, NULL), KV_LEASE_NOT_FOUND);
}

static size_t take(struct fixture *f, struct kv_watch *w, struct kv_event **ret) {
    size_t n = 0;
    assert_int_equal(kv_watch_take(w, 0, &f->arena, ret, &n), 0);
    return n;
}

static void test_only_the_watches_a_change_concerns_are_ready(void **state) {
    struct fixture *f = *state;
    struct kv_watch *a = kv_watch_new(f->kv, kv_string("a"), kv_string(""), 0, "A");
    struct kv_watch *all = kv_watch_new(f->kv, kv_string("a"), kv_string("z"), 0, "ALL");
    struct kv_event *events;
    assert_null(kv_watch_ready(f->kv));
    put(f, "b", "1");
    assert_ptr_equal(kv_watch_ready(f->kv), all);
    assert_null(kv_watch_ready(f->kv));
    assert_int_equal(take(f, all, &events), 1);
    put(f, "a", "1");
    put(f, "a", "2");
    struct kv_watch *first = kv_watch_ready(f->kv), *second = kv_watch_ready(f->kv);
    assert_ptr_not_equal(first, second);
    assert_null(kv_watch_ready(f->kv));
    assert_string_equal(kv_watch_owner(a), "A");
    assert_int_equal(take(f, a, &events), 2);
    assert_int_equal(events[1].pair.version, 2);
    assert_int_equal(take(f, all, &events), 2);
    assert_int_equal(take(f, all, &events), 0);
}

static void test_a_watch_from_the_past_gets_what_happened_since(void **state) {
    struct fixture *f = *state;
    put(f, "a", "1");
    put(f, "b", "1");
    struct kv_op op = op_delete("a", "");
    struct kv_txn_result r = {0};
    assert_int_equal(apply(f, NULL, 0, &op, 1, &r), 0);
    struct kv_watch *w = kv_watch_new(f->kv, kv_string("a"), kv_string(""), 2, NULL);
    struct kv_event *events;
    assert_ptr_equal(kv_watch_ready(f->kv), w);
    assert_int_equal(take(f, w, &events), 2);
    assert_true(events[1].deleted);
    assert_int_equal(events[1].pair.mod_revision, 4);
    struct kv_watch *later = kv_watch_new(f->kv, kv_string("a"), kv_string(""), 6, NULL);
    put(f, "a", "5");
    assert_ptr_equal(kv_watch_ready(f->kv), w);
    assert_null(kv_watch_ready(f->kv));
    put(f, "a", "6");
    assert_int_equal(take(f, later, &events), 1);
    assert_int_equal(events[0].pair.mod_revision, 6);
}

static void test_a_watch_from_a_compacted_revision_is_told_so(void **state) {
    struct fixture *f = *state;
    kv_free(f->kv);
    f->kv = kv_new(1, 8);
    struct kv_watch *idle = kv_watch_new(f->kv, kv_string("z"), kv_string(""), 0, NULL);
    struct kv_watch *slow = kv_watch_new(f->kv, kv_string("a"), kv_string(""), 0, NULL);
    for (int i = 0; i < 50; i++)
        put(f, "a", "x");
    assert_true(kv_compact_revision(f->kv) > 2);
    struct kv_event *events;
    size_t n;
    assert_int_equal(kv_watch_take(slow, 0, &f->arena, &events, &n), KV_COMPACTED);
    struct kv_watch *old = kv_watch_new(f->kv, kv_string("q"), kv_string(""), 2, NULL);
    assert_int_equal(kv_watch_take(old, 0, &f->arena, &events, &n), KV_COMPACTED);
    put(f, "z", "1");
    assert_int_equal(take(f, idle, &events), 1);
    struct kv_watch *edge =
        kv_watch_new(f->kv, kv_string("a"), kv_string(""), kv_compact_revision(f->kv), NULL);
    assert_true(take(f, edge, &events) > 0);
}

static void test_compaction_by_hand_refuses_the_past_and_the_future(void **state) {
    struct fixture *f = *state;
    put(f, "a", "1");
    put(f, "a", "2");
    assert_int_equal(kv_compact(f->kv, 9, NULL), KV_FUTURE_REVISION);
    assert_int_equal(kv_compact(f->kv, 3, NULL), 0);
    assert_int_equal(kv_compact(f->kv, 3, NULL), KV_COMPACTED);
    assert_int_equal(kv_compact_revision(f->kv), 3);
}

static void test_a_take_with_a_limit_never_splits_a_revision(void **state) {
    struct fixture *f = *state;
    struct kv_watch *w = kv_watch_new(f->kv, kv_string("a"), kv_string("z"), 0, NULL);
    struct kv_op ops[] = {op_put("a", "1"), op_put("b", "2"), op_put("c", "3")};
    struct kv_txn_result r = {0};
    assert_int_equal(apply(f, NULL, 0, ops, 3, &r), 0);
    put(f, "d", "");
    struct kv_event *events;
    size_t n = 0;
    assert_ptr_equal(kv_watch_ready(f->kv), w);
    assert_int_equal(kv_watch_take(w, 1, &f->arena, &events, &n), 0);
    assert_int_equal(n, 3);
    assert_ptr_equal(kv_watch_ready(f->kv), w);
    assert_int_equal(kv_watch_take(w, 1, &f->arena, &events, &n), 0);
    assert_int_equal(n, 1);
    assert_null(kv_watch_ready(f->kv));
}

/* A plain list of keys is kept beside the store and compared with it after every step. */
static void test_ten_thousand_random_operations_agree_with_a_plain_list(void **state) {
    struct fixture *f = *state;
    enum { KEYS = 40 };
    int64_t version[KEYS] = {0}, mod[KEYS] = {0};
    struct kv_watch *w = kv_watch_new(f->kv, kv_string("k"), kv_string("l"), 0, NULL);
    struct rand rand;
    rand_init(&rand, 7);
    int64_t events_seen = 0, events_made = 0;
    for (int step = 0; step < 10000; step++) {
        int k = (int)rand_below(&rand, KEYS);
        char key[8];
        snprintf(key, sizeof(key), "k%02d", k);
        bool put_it = rand_below(&rand, 3) > 0;
        struct kv_op op = put_it ? op_put(key, "v") : op_delete(key, "");
        struct kv_txn_result r = {0};
        struct kv_compare c = cmp(key, KV_MOD, KV_EQUAL, rand_below(&rand, 4) ? mod[k] : 1);
        assert_int_equal(apply(f, &c, 1, &op, 1, &r), 0);
        assert_int_equal(r.succeeded, c.number == mod[k]);
        if (r.succeeded && (put_it || version[k])) {
            events_made++;
            version[k] = put_it ? version[k] + 1 : 0;
            mod[k] = put_it ? r.revision : 0;
        }
        struct kv_op_result now = get(f, key, "");
        assert_int_equal(now.count, version[k] > 0);
        assert_true(!now.count || now.pairs[0].version == version[k]);
        struct kv_event *events;
        if (kv_watch_ready(f->kv))
            events_seen += (int64_t)take(f, w, &events);
        arena_fini(&f->arena);
    }
    assert_int_equal(events_seen, events_made);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_an_empty_store_is_at_revision_one_and_a_put_makes_two),
        TEST(test_a_key_deleted_and_put_again_begins_a_new_life),
        TEST(test_deleting_nothing_makes_no_revision),
        TEST(test_one_transaction_is_one_revision_and_sees_its_own_puts),
        TEST(test_ranges_are_by_key_and_know_prefix_limit_and_everything),
        TEST(test_a_prefix_of_ff_ends_at_the_end_of_everything),
        TEST(test_compares_know_every_target_and_relation),
        TEST(test_an_absent_key_compares_as_zero_but_has_no_value),
        TEST(test_a_range_compare_asks_every_key_and_holds_for_none),
        TEST(test_a_failed_compare_takes_the_other_branch_whole),
        TEST(test_what_etcd_refuses_is_refused_in_its_words),
        TEST(test_compares_are_refused_as_operations_are),
        TEST(test_what_was_there_before_is_returned_where_it_is_asked_for),
        TEST(test_a_refused_transaction_changes_nothing),
        TEST(test_a_lease_that_ends_takes_its_keys_in_one_revision),
        TEST(test_a_lease_id_is_granted_once),
        TEST(test_only_the_watches_a_change_concerns_are_ready),
        TEST(test_a_watch_from_the_past_gets_what_happened_since),
        TEST(test_a_watch_from_a_compacted_revision_is_told_so),
        TEST(test_compaction_by_hand_refuses_the_past_and_the_future),
        TEST(test_a_take_with_a_limit_never_splits_a_revision),
        TEST(test_ten_thousand_random_operations_agree_with_a_plain_list),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
