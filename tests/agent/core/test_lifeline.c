/* Both sides of a lifeline: when an agent opens, keeps and drops it, what its end proves. */
#include "agent/core/lifeline.h"
#include "tests/agent/core/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* --- the agent's side --- */

static uint64_t join_with_lifeline(void) {
    struct rendezvous_config c = config_of();
    c.lifeline = true;
    begin(&c);
    come_to_head("", NULL);
    assert_null(find(ACTION_LIFELINE_OPEN)); /* there is no session yet */
    done(find_put(KEY_MEMBER, NULL)->txn.id, true, true, 11);
    const struct action *a = need(ACTION_LIFELINE_OPEN);
    assert_string_equal(a->lifeline.claim.uid, uid);
    assert_string_equal(a->lifeline.claim.inc, INC);
    assert_int_equal(a->lifeline.claim.revision, 11);
    return a->lifeline.id;
}

static void told(uint64_t id, bool open) {
    step((struct event){.kind = EVENT_LIFELINE, .lifeline = {.id = id, .open = open}});
}

static void start_workers(void) {
    form(1, 0, 20);
    port();
    done(find_put(KEY_ACK, NULL)->txn.id, true, true, 21);
    run(1, 22);
}

static void test_workers_inherit_a_lifeline_that_is_open(void **state) {
    (void)state;
    told(join_with_lifeline(), true);
    start_workers();
    assert_true(need(ACTION_START)->start->lifeline);
    assert_null(find(ACTION_LIFELINE_DROP));
}

static void test_one_that_is_not_open_when_workers_start_is_dropped_before(void **state) {
    (void)state;
    uint64_t id = join_with_lifeline();
    start_workers();
    const struct action *drop = need(ACTION_LIFELINE_DROP), *start = need(ACTION_START);
    assert_int_equal(drop->lifeline.id, id);
    assert_true(drop < start);
    assert_false(start->start->lifeline);
    told(id, true); /* too late: it is not taken up again */
    assert_null(find(ACTION_LIFELINE_OPEN));
}

static void test_none_is_opened_while_workers_live_and_one_is_after(void **state) {
    (void)state;
    uint64_t id = join_with_lifeline();
    told(id, true);
    start_workers();
    told(id, false); /* it broke */
    tick(10000 * MS);
    assert_null(find(ACTION_LIFELINE_OPEN));
    exited(0, 0);
    exited(1, 0);
    reaped();
    assert_true(need(ACTION_LIFELINE_OPEN)->lifeline.id != id);
}

static void test_one_that_cannot_be_made_is_not_tried_again_at_once(void **state) {
    (void)state;
    told(join_with_lifeline(), false);
    assert_null(find(ACTION_LIFELINE_OPEN));
    now_ns += 6000 * MS; /* suspect */
    told(0, false);      /* of nobody's */
    need(ACTION_LIFELINE_OPEN);
}

static void test_a_lost_session_takes_its_lifeline_along(void **state) {
    (void)state;
    uint64_t id = join_with_lifeline();
    told(id, true);
    tick(500 * MS);
    beat(need(ACTION_BEAT)->beat.seq, BEAT_REFUSED);
    assert_int_equal(need(ACTION_LIFELINE_DROP)->lifeline.id, id);
    assert_null(find(ACTION_LIFELINE_OPEN));
}

/* Its end crosses with its being dropped. */
static void test_the_end_of_one_that_was_dropped_is_nothing(void **state) {
    (void)state;
    uint64_t id = join_with_lifeline();
    start_workers();
    assert_int_equal(need(ACTION_LIFELINE_DROP)->lifeline.id, id);
    told(id, false);
    assert_int_equal(n_actions, 0);
    reaped();
    uint64_t next = need(ACTION_LIFELINE_OPEN)->lifeline.id;
    told(id, false);
    told(next, true);
    told(next, false);
    assert_null(find(ACTION_LIFELINE_OPEN)); /* not at once, for the next one has ended */
}

static void test_without_the_option_there_is_none(void **state) {
    (void)state;
    join();
    assert_null(find(ACTION_LIFELINE_OPEN));
    start_workers();
    assert_false(need(ACTION_START)->start->lifeline);
}

/* --- the store's side --- */

static void test_only_an_end_in_order_certifies_and_not_before_the_killed_are_dead(void **state) {
    (void)state;
    assert_int_equal(lifeline_due_ns(LIFELINE_CLOSED, 5), 5 + TIMING_KILL_NS);
    assert_int_equal(lifeline_due_ns(LIFELINE_BROKEN, 5), INT64_MAX);
}

static void test_the_certificate_ends_the_session_that_was_named_and_no_other(void **state) {
    (void)state;
    struct lifeline_claim claim = {.inc = INC, .uid = "u", .revision = 7};
    struct lifeline_certificate c;
    lifeline_certify(&claim, &c);
    assert_int_equal(c.txn.n_compares, 1);
    assert_int_equal(c.txn.compares[0].key.kind, KEY_SESSION);
    assert_int_equal(c.txn.compares[0].target, COMPARE_CREATE);
    assert_int_equal(c.txn.compares[0].number, 7);
    assert_string_equal(c.txn.compares[0].key.uid, "u");
    assert_int_equal(c.txn.n_ops, 2);
    assert_int_equal(c.txn.ops[0].key.kind, KEY_SESSION);
    assert_false(c.txn.ops[0].put);
    assert_int_equal(c.txn.ops[1].key.kind, KEY_GONE);
    assert_int_equal(c.txn.ops[1].value->gone.why, GONE_SILENT);
    assert_int_equal(c.txn.lease, key_lease(INC));
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_teardown(name, script_end)
    const struct CMUnitTest tests[] = {
        TEST(test_workers_inherit_a_lifeline_that_is_open),
        TEST(test_one_that_is_not_open_when_workers_start_is_dropped_before),
        TEST(test_none_is_opened_while_workers_live_and_one_is_after),
        TEST(test_one_that_cannot_be_made_is_not_tried_again_at_once),
        TEST(test_a_lost_session_takes_its_lifeline_along),
        TEST(test_the_end_of_one_that_was_dropped_is_nothing),
        TEST(test_without_the_option_there_is_none),
        TEST(test_only_an_end_in_order_certifies_and_not_before_the_killed_are_dead),
        TEST(test_the_certificate_ends_the_session_that_was_named_and_no_other),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
