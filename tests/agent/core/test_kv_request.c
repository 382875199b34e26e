#include "agent/core/kv_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static struct store_key key_of(enum key_kind kind, const char *uid) {
    struct store_key key = {.kind = kind};
    strcpy(key.inc, "i");
    strcpy(key.uid, uid);
    return key;
}

static void assert_bytes(struct kv_bytes b, const char *expected) {
    assert_int_equal(b.len, strlen(expected));
    assert_memory_equal(b.data, expected, b.len);
}

static void test_a_key_is_a_range_of_one(void **state) {
    (void)state;
    struct arena a = {0};
    struct kv_bytes end;
    struct store_key key = key_of(KEY_SESSION, "u");
    assert_bytes(kv_request_key(&a, "run", &key, &end), "/rankrun/run/i/s/u");
    assert_int_equal(end.len, 0);
    arena_fini(&a);
}

static void test_a_scope_is_a_range_with_an_end(void **state) {
    (void)state;
    struct arena a = {0};
    struct store_key keys[] = {{.kind = KEY_CUR}, key_of(KEY_SESSION, "")};
    keys[1].scope = KEYS_ALL;
    struct kv_txn txn = kv_request_read(&a, "run", keys, 2);
    assert_int_equal(txn.n_success, 2);
    assert_int_equal(txn.n_compares + txn.n_failure, 0);
    assert_int_equal(txn.success[0].kind, KV_RANGE);
    assert_bytes(txn.success[0].key, "/rankrun/run/cur");
    assert_int_equal(txn.success[0].range_end.len, 0);
    assert_int_equal(txn.success[1].kind, KV_RANGE);
    assert_bytes(txn.success[1].key, "/rankrun/run/i/s/");
    assert_bytes(txn.success[1].range_end, "/rankrun/run/i/s0");
    arena_fini(&a);
}

static void test_every_compare_asks_the_same_of_the_store(void **state) {
    (void)state;
    static const struct {
        enum compare_target target;
        enum kv_target expected;
    } rows[] = {{COMPARE_VERSION, KV_VERSION},
                {COMPARE_CREATE, KV_CREATE},
                {COMPARE_MOD, KV_MOD},
                {COMPARE_LEASE, KV_LEASE}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        for (int less = 0; less < 2; less++) {
            struct arena a = {0};
            struct compare c = {.key = key_of(KEY_HEAD, ""),
                                .target = rows[i].target,
                                .relation = less ? COMPARE_LESS : COMPARE_EQUAL,
                                .number = 7};
            struct txn asked = {.compares = &c, .n_compares = 1};
            struct kv_txn txn = kv_request_txn(&a, "run", &asked, kv_request_plain);
            assert_int_equal(txn.n_compares, 1);
            assert_int_equal(txn.n_success, 0);
            assert_bytes(txn.compares[0].key, "/rankrun/run/i/head");
            assert_int_equal(txn.compares[0].target, rows[i].expected);
            assert_int_equal(txn.compares[0].relation, less ? KV_LESS : KV_EQUAL);
            assert_int_equal(txn.compares[0].number, 7);
            arena_fini(&a);
        }
    }
}

static struct kv_bytes spelled(struct arena *a, enum key_kind kind, const union value *v) {
    assert_int_equal(kind, KEY_LEAD);
    return kv_string(arena_strdup(a, v->lead.uid));
}

static void test_puts_carry_value_and_lease_deletes_neither(void **state) {
    (void)state;
    struct arena a = {0};
    union value v = {.lead = {"u"}};
    struct op ops[] = {{.key = key_of(KEY_LEAD, ""), .put = true, .value = &v},
                       {.key = key_of(KEY_SESSION, "")}};
    ops[1].key.scope = KEYS_ALL;
    struct txn asked = {.ops = ops, .n_ops = 2, .lease = 9};
    struct kv_txn txn = kv_request_txn(&a, "run", &asked, spelled);
    memset(&v, 'x', sizeof(v)); /* it has a copy */
    assert_int_equal(txn.n_success, 2);
    assert_int_equal(txn.success[0].kind, KV_PUT);
    assert_bytes(txn.success[0].key, "/rankrun/run/i/lead");
    assert_bytes(txn.success[0].value, "u");
    assert_int_equal(txn.success[0].lease, 9);
    assert_int_equal(txn.success[1].kind, KV_DELETE);
    assert_bytes(txn.success[1].range_end, "/rankrun/run/i/s0");
    assert_int_equal(txn.success[1].value.len, 0);
    assert_int_equal(txn.success[1].lease, 0);
    arena_fini(&a);
}

static void test_a_plain_value_is_the_struct_of_its_kind(void **state) {
    (void)state;
    struct arena a = {0};
    union value v = {.session = {12}};
    struct kv_bytes b = kv_request_plain(&a, KEY_SESSION, &v);
    v.session.seq = 13;
    assert_int_equal(b.len, sizeof(v.session));
    assert_int_equal(((const struct session_value *)(const void *)b.data)->seq, 12);
    arena_fini(&a);
}

static void test_an_answer_is_the_event_of_what_was_asked(void **state) {
    (void)state;
    struct action a[] = {{.kind = ACTION_TXN, .txn = {.id = 3}},
                         {.kind = ACTION_BEAT, .beat = {.seq = 4}},
                         {.kind = ACTION_SNAPSHOT, .snapshot = {.id = 5}},
                         {.kind = ACTION_LEASE_GRANT, .lease = {.id = 6}}};
    uint64_t ids[4];
    for (int i = 0; i < 4; i++)
        ids[i] = kv_request_id(&a[i]);
    struct event txn = kv_request_event(a[0].kind, ids[0], true, false, 9);
    assert_true(txn.kind == EVENT_DONE && txn.done.id == 3 && txn.done.reached);
    assert_true(!txn.done.applied && txn.done.revision == 9);
    struct event beat = kv_request_event(a[1].kind, ids[1], true, false, 9);
    assert_true(beat.kind == EVENT_BEAT && beat.beat.seq == 4);
    assert_int_equal(beat.beat.result, BEAT_REFUSED);
    assert_int_equal(kv_request_event(a[1].kind, 4, true, true, 9).beat.result, BEAT_APPLIED);
    assert_int_equal(kv_request_event(a[1].kind, 4, false, true, 9).beat.result, BEAT_FAILED);
    struct event read = kv_request_event(a[2].kind, ids[2], false, false, 0);
    assert_true(read.kind == EVENT_SNAPSHOT && read.snapshot.id == 5 && !read.snapshot.reached);
    struct event grant = kv_request_event(a[3].kind, ids[3], true, true, 9);
    assert_true(grant.kind == EVENT_DONE && grant.done.id == 6 && grant.done.applied);
}

static void test_only_what_writes_has_a_transaction(void **state) {
    (void)state;
    struct action txn = {.kind = ACTION_TXN}, beat = {.kind = ACTION_BEAT};
    struct action read = {.kind = ACTION_SNAPSHOT};
    assert_ptr_equal(kv_request_writes(&txn), &txn.txn.txn);
    assert_ptr_equal(kv_request_writes(&beat), &beat.beat.txn);
    assert_null(kv_request_writes(&read));
}

/* Leaves out what is no key of the run, as a client does. */
static bool read_one(void *arg, struct arena *a, const struct kv_pair *p, bool deleted,
                     struct entry *ret) {
    (void)a;
    ++*(int *)arg;
    *ret = kv_request_revisions(p, deleted);
    return key_parse(p->key.data, p->key.len, "run", &ret->key);
}

static void test_all_that_was_read_is_told_but_what_is_nobodys(void **state) {
    (void)state;
    struct kv_pair one[] = {{.key = kv_string("/rankrun/run/cur"), .mod_revision = 2}};
    struct kv_pair two[] = {{.key = kv_string("/rankrun/other/cur")},
                            {.key = kv_string("/rankrun/run/i/head"), .version = 7}};
    struct kv_op_result results[] = {{.pairs = one, .n_pairs = 1}, {.pairs = two, .n_pairs = 2}};
    struct kv_txn_result r = {.results = results, .n_results = 2};
    struct arena a = {0};
    int seen = 0;
    size_t n = 0;
    struct entry *entries = kv_request_entries(&a, &r, read_one, &seen, &n);
    assert_int_equal(seen, 3);
    assert_int_equal(n, 2);
    assert_true(entries[0].key.kind == KEY_CUR && entries[0].mod_revision == 2);
    assert_true(entries[1].key.kind == KEY_HEAD && entries[1].version == 7);
    arena_fini(&a);
}

static void test_the_operations_have_the_values_that_were_copied(void **state) {
    (void)state;
    struct arena a = {0};
    union value v = {.lead = {"u"}};
    struct op ops[] = {{.key = key_of(KEY_LEAD, ""), .put = true, .value = &v},
                       {.key = key_of(KEY_SESSION, "s")}};
    struct txn asked = {.ops = ops, .n_ops = 2};
    struct kv_txn txn = kv_request_txn(&a, "run", &asked, kv_request_plain);
    struct op *kept = kv_request_ops(&a, &asked, &txn);
    memset(&v, 'x', sizeof(v));
    memset(ops, 0, sizeof(ops));
    assert_string_equal(kept[0].value->lead.uid, "u");
    assert_true(kept[0].put && !kept[1].put && !kept[1].value);
    assert_string_equal(kept[1].key.uid, "s");
    arena_fini(&a);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_key_is_a_range_of_one),
        cmocka_unit_test(test_a_scope_is_a_range_with_an_end),
        cmocka_unit_test(test_every_compare_asks_the_same_of_the_store),
        cmocka_unit_test(test_puts_carry_value_and_lease_deletes_neither),
        cmocka_unit_test(test_a_plain_value_is_the_struct_of_its_kind),
        cmocka_unit_test(test_an_answer_is_the_event_of_what_was_asked),
        cmocka_unit_test(test_only_what_writes_has_a_transaction),
        cmocka_unit_test(test_all_that_was_read_is_told_but_what_is_nobodys),
        cmocka_unit_test(test_the_operations_have_the_values_that_were_copied),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
