#include "agent/core/kv_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static struct key key_of(enum key_kind kind, const char *uid) {
    struct key key = {.kind = kind};
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
    struct key key = key_of(KEY_SESSION, "u");
    assert_bytes(kv_request_key(&a, "run", &key, &end), "/rankrun/run/i/s/u");
    assert_int_equal(end.len, 0);
    arena_fini(&a);
}

static void test_a_scope_is_a_range_with_an_end(void **state) {
    (void)state;
    struct arena a = {0};
    struct key keys[] = {{.kind = KEY_CUR}, key_of(KEY_SESSION, "")};
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

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_key_is_a_range_of_one),
        cmocka_unit_test(test_a_scope_is_a_range_with_an_end),
        cmocka_unit_test(test_every_compare_asks_the_same_of_the_store),
        cmocka_unit_test(test_puts_carry_value_and_lease_deletes_neither),
        cmocka_unit_test(test_a_plain_value_is_the_struct_of_its_kind),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
