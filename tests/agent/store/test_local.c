#include "tests/agent/store/contract_tests.h"

static struct kv *kv;
static int writes;

static void on_written(void *arg) {
    (void)arg;
    writes++;
}

static int set_up(void **state) {
    static struct contract c;
    struct loop *l = loop_new(NULL);
    kv = kv_new(1, 0);
    contract_begin(&c, l, store_local_new(l, kv, on_written, NULL));
    *state = &c;
    return 0;
}

static int tear_down(void **state) {
    struct contract *c = *state;
    store_free(c->store);
    contract_end(c);
    loop_free(c->loop);
    kv_free(kv);
    return 0;
}

static void test_a_watch_of_what_is_compacted_ends_and_says_so(void **state) {
    struct contract *c = *state;
    contract_fresh(c);
    put(c, "a", "1");
    int64_t from = c->revision;
    put(c, "a", "2");
    assert_int_equal(kv_compact(kv, c->revision, NULL), 0);
    watch_all(c, from);
    await_events(c, 1);
    assert_true(c->ended);
    assert_int_equal(c->compact_revision, from + 1);
    assert_int_equal(c->n_events, 0);
}

static void test_whoever_shares_the_keys_is_told_of_a_write(void **state) {
    struct contract *c = *state;
    contract_fresh(c);
    int before = writes;
    put(c, "a", "1");
    assert_true(writes > before);
}

static void test_keys_go_with_their_lease(void **state) {
    struct contract *c = *state;
    contract_fresh(c);
    store_grant(c->store, 0, 1, CONTRACT_PATIENCE_MS, on_contract_reply, c);
    await_reply(c);
    put(c, "b", "0");
    watch_all(c, c->revision + 1);
    int64_t lease;
    assert_int_equal(kv_lease_grant(kv, 77, 1, clock_monotonic_ns(), &lease, NULL), 0);
    ask_op(c, (struct kv_op){.kind = KV_PUT, .key = key(c, "l"), .lease = 77});
    await_events(c, 2);
    store_cancel(c->watch);
    assert_true(c->events[1].deleted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CONTRACT_TESTS,
        cmocka_unit_test(test_a_watch_of_what_is_compacted_ends_and_says_so),
        cmocka_unit_test(test_whoever_shares_the_keys_is_told_of_a_write),
        cmocka_unit_test(test_keys_go_with_their_lease),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
