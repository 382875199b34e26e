/* What every store must do: the tests of the contract, run over each of them. */
#pragma once

#include "tests/agent/store/contract.h"

static void test_what_is_put_is_read_back(void **state) {
    struct contract *c = *state;
    contract_fresh(c);
    put(c, "a", "one");
    int64_t first = c->revision;
    put(c, "a", "two");
    assert_int_equal(c->revision, first + 1);
    get(c, "a");
    assert_string_equal(c->value, "two");
    assert_int_equal(c->count, 1);
    get(c, "b");
    assert_int_equal(c->count, 0);
    ask_op(c, (struct kv_op){.kind = KV_DELETE, .key = key(c, "a")});
    assert_int_equal(c->count, 1);
    get(c, "a");
    assert_int_equal(c->count, 0);
}

static void test_keys_and_values_are_any_bytes(void **state) {
    struct contract *c = *state;
    contract_fresh(c);
    char bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    struct kv_op two[] = {
        {.kind = KV_PUT, .key = key(c, "\x01\xff\"\\"), .value = {bytes, sizeof(bytes)}},
        {.kind = KV_RANGE, .key = key(c, "\x01\xff\"\\")}};
    struct kv_compare same = {
        .target = KV_VALUE, .key = key(c, "\x01\xff\"\\"), .value = {bytes, sizeof(bytes)}};
    struct kv_txn txn = {.success = two, .n_success = 2};
    ask(c, &txn);
    assert_int_equal(c->count, 1);
    txn = (struct kv_txn){.compares = &same, .n_compares = 1};
    ask(c, &txn);
    assert_true(c->succeeded);
    same.value.len--;
    ask(c, &txn);
    assert_false(c->succeeded);
}

static void test_a_transaction_takes_the_branch_its_compares_choose(void **state) {
    struct contract *c = *state;
    contract_fresh(c);
    struct kv_compare absent = {.target = KV_VERSION, .key = key(c, "x")};
    struct kv_op then = {.kind = KV_PUT, .key = key(c, "x"), .value = kv_string("mine")};
    struct kv_op otherwise = {.kind = KV_RANGE, .key = key(c, "x")};
    struct kv_txn txn = {.compares = &absent,
                         .n_compares = 1,
                         .success = &then,
                         .n_success = 1,
                         .failure = &otherwise,
                         .n_failure = 1};
    ask(c, &txn);
    assert_true(c->succeeded);
    int64_t created = c->revision;
    ask(c, &txn);
    assert_false(c->succeeded);
    assert_string_equal(c->value, "mine");
    assert_int_equal(c->revision, created); /* a failed one with reads only makes no revision */

    struct kv_compare mine = {.target = KV_CREATE, .key = key(c, "x"), .number = created};
    txn = (struct kv_txn){.compares = &mine, .n_compares = 1};
    ask(c, &txn);
    assert_true(c->succeeded);
    put(c, "x", "beat");
    ask(c, &txn);
    assert_true(c->succeeded);
    mine.target = KV_MOD;
    ask(c, &txn);
    assert_false(c->succeeded);
    mine.relation = KV_GREATER;
    ask(c, &txn);
    assert_true(c->succeeded);
}

static void test_a_compare_of_a_range_holds_for_all_its_keys(void **state) {
    struct contract *c = *state;
    contract_fresh(c);
    struct kv_compare none = {
        .target = KV_VERSION, .key = kv_string(c->prefix), .range_end = key_end(c)};
    struct kv_txn txn = {.compares = &none, .n_compares = 1};
    ask(c, &txn);
    assert_true(c->succeeded);
    put(c, "a", "1");
    int64_t seen = c->revision;
    ask(c, &txn);
    assert_false(c->succeeded);
    none.target = KV_MOD;
    none.relation = KV_LESS;
    none.number = seen + 1;
    ask(c, &txn);
    assert_true(c->succeeded);
    put(c, "b", "1");
    ask(c, &txn);
    assert_false(c->succeeded);
}

static void test_a_transaction_that_is_too_long_or_doubles_a_key_is_refused(void **state) {
    struct contract *c = *state;
    contract_fresh(c);
    struct kv_op ops[KV_OPS_MAX + 1];
    for (int i = 0; i <= KV_OPS_MAX; i++)
        ops[i] = (struct kv_op){.kind = KV_PUT,
                                .key = key(c, arena_printf(&c->arena, "%d", i)),
                                .value = kv_string("v")};
    struct kv_txn txn = {.success = ops, .n_success = KV_OPS_MAX};
    ask(c, &txn);
    assert_int_equal(c->reply.outcome, STORE_ANSWERED);
    txn.n_success++;
    ask(c, &txn);
    assert_int_equal(c->reply.outcome, STORE_REFUSED);
    assert_string_equal(c->why, kv_text(KV_TOO_MANY_OPS));
    ops[1].key = ops[0].key;
    txn.n_success = 2;
    ask(c, &txn);
    assert_int_equal(c->reply.outcome, STORE_REFUSED);
    assert_string_equal(c->why, kv_text(KV_DUPLICATE_KEY));
}

static void test_a_watch_tells_the_past_and_the_present_in_order(void **state) {
    struct contract *c = *state;
    contract_fresh(c);
    put(c, "a", "1");
    int64_t from = c->revision;
    put(c, "b", "2");
    ask_op(c, (struct kv_op){.kind = KV_DELETE, .key = key(c, "a")});
    watch_all(c, from);
    await_events(c, 3);
    put(c, "c", "3");
    await_events(c, 4);
    store_cancel(c->watch);
    assert_false(c->ended);
    assert_int_equal(c->n_events, 4);
    assert_string_equal(c->events[0].value, "1");
    assert_string_equal(c->events[1].value, "2");
    assert_true(c->events[2].deleted);
    assert_int_equal(strcmp(c->events[2].key + strlen(c->prefix), "a"), 0);
    assert_string_equal(c->events[3].value, "3");
    for (int i = 0; i < 4; i++)
        assert_int_equal(c->events[i].mod_revision, from + i);
}

static void test_a_watch_does_not_tell_what_lies_outside(void **state) {
    struct contract *c = *state;
    contract_fresh(c);
    put(c, "a", "1");
    watch_all(c, c->revision + 1);
    struct kv_op outside = {.kind = KV_PUT, .key = kv_string("elsewhere"), .value = kv_string("x")};
    ask_op(c, outside);
    put(c, "b", "2");
    await_events(c, 1);
    store_cancel(c->watch);
    assert_int_equal(c->n_events, 1);
    assert_string_equal(c->events[0].value, "2");
}

static void test_leases_are_granted_and_kept_alive(void **state) {
    struct contract *c = *state;
    contract_fresh(c);
    store_grant(c->store, 0, 60, CONTRACT_PATIENCE_MS, on_contract_reply, c);
    await_reply(c);
    assert_int_equal(c->reply.outcome, STORE_ANSWERED);
    assert_int_not_equal(c->reply.lease, 0);
    assert_int_equal(c->reply.ttl_s, 60);
    int64_t lease = c->reply.lease;
    store_keepalive(c->store, lease, CONTRACT_PATIENCE_MS, on_contract_reply, c);
    await_reply(c);
    assert_int_equal(c->reply.ttl_s, 60);
    store_grant(c->store, lease, 60, CONTRACT_PATIENCE_MS, on_contract_reply, c);
    await_reply(c);
    assert_int_equal(c->reply.outcome, STORE_ANSWERED);
    assert_int_equal(c->reply.lease, lease);
    ask_op(c, (struct kv_op){.kind = KV_PUT, .key = key(c, "l"), .lease = lease});
    store_keepalive(c->store, lease ^ 1, CONTRACT_PATIENCE_MS, on_contract_reply, c);
    await_reply(c);
    assert_int_equal(c->reply.outcome, STORE_ANSWERED);
    assert_int_equal(c->reply.ttl_s, 0);
    struct kv_op op = {.kind = KV_PUT, .key = key(c, "l"), .lease = lease ^ 1};
    struct kv_txn txn = {.success = &op, .n_success = 1};
    ask(c, &txn);
    assert_int_equal(c->reply.outcome, STORE_REFUSED);
    assert_string_equal(c->why, kv_text(KV_LEASE_NOT_FOUND));
}

static void test_a_cancelled_call_is_not_answered(void **state) {
    struct contract *c = *state;
    contract_fresh(c);
    struct kv_op op = {.kind = KV_PUT, .key = key(c, "a"), .value = kv_string("1")};
    struct kv_txn txn = {.success = &op, .n_success = 1};
    int replies = c->replies;
    store_cancel(store_txn(c->store, &txn, CONTRACT_PATIENCE_MS, on_contract_reply, c));
    get(c, "b");
    get(c, "b");
    assert_int_equal(c->replies, replies + 2);
}

#define CONTRACT_TESTS                                                                             \
    cmocka_unit_test(test_what_is_put_is_read_back),                                               \
        cmocka_unit_test(test_keys_and_values_are_any_bytes),                                      \
        cmocka_unit_test(test_a_transaction_takes_the_branch_its_compares_choose),                 \
        cmocka_unit_test(test_a_compare_of_a_range_holds_for_all_its_keys),                        \
        cmocka_unit_test(test_a_transaction_that_is_too_long_or_doubles_a_key_is_refused),         \
        cmocka_unit_test(test_a_watch_tells_the_past_and_the_present_in_order),                    \
        cmocka_unit_test(test_a_watch_does_not_tell_what_lies_outside),                            \
        cmocka_unit_test(test_leases_are_granted_and_kept_alive),                                  \
        cmocka_unit_test(test_a_cancelled_call_is_not_answered)
