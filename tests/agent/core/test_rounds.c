/* One core, every event made by hand: what it does with its workers in a round. */
#include "agent/core/state.h"
#include "tests/agent/core/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* --- rounds --- */

static void test_the_workers_are_told_what_head_and_plan_say(void **state) {
    (void)state;
    join();
    form(1, 0, 20);
    port();
    done(find_put(KEY_ACK, NULL)->txn.id, true, true, 21);
    run(1, 22);
    const struct round_spec *s = need(ACTION_START)->start;
    assert_int_equal(s->round, 1);
    assert_int_equal(s->world, 2);
    assert_int_equal(s->local_world, 2);
    assert_int_equal(s->master_port, 777);
    assert_string_equal(s->master_addr, "10.0.0.1");
    assert_true(s->deadline_required);
}

static void test_a_round_below_an_own_ack_is_never_started(void **state) {
    (void)state;
    join();
    form(1, 0, 20);
    port();
    done(find_put(KEY_ACK, NULL)->txn.id, true, true, 21);
    form(2, 1, 30); /* round 1 ran without this node having seen it */
    if (port_needed)
        port();
    run(1, 25); /* an older state */
    assert_null(find(ACTION_START));
}

static void test_a_failed_worker_ends_the_round_and_the_group(void **state) {
    (void)state;
    const union value *v = NULL;
    work();
    exited(1, 3 << 8);
    assert_int_equal(need(ACTION_STOP)->stop.grace_ms, 2000);
    const struct action *end = find_put(KEY_HEAD, &v);
    assert_int_equal(v->head.phase, HEAD_END);
    assert_int_equal(v->head.cause, CAUSE_FAILURE);
    assert_int_equal(v->head.failure.local_rank, 1);
    assert_string_equal(v->head.failure.error, "boom");
    assert_int_equal(end->txn.txn.n_compares, 2);
    exited(0, 15);
    reaped();
    assert_false(port_needed); /* the round has not ended yet */
    form(2, 1, 40);
    port();
    assert_non_null(find_put(KEY_ACK, &v));
    assert_int_equal(v->ack.why, ACK_FAILED);
}

/* The clocks of two nodes say nothing about who was first. */
static void test_of_two_failures_the_one_that_reached_the_store_first_is_named(void **state) {
    (void)state;
    const union value *v = NULL;
    work();
    exited(1, 3 << 8);
    const struct action *end = find_put(KEY_HEAD, &v);
    union value head = head_of(HEAD_END, 1, 1);
    head.head.cause = CAUSE_FAILURE;
    strcpy(head.head.failure.uid, "ffffffffffffffffffffffffffffffff");
    strcpy(head.head.failure.node, "other");
    head.head.failure.rank = 7;
    head.head.failure.wait_status = 9;
    head.head.failure.realtime_ns = v->head.failure.realtime_ns + 86400000 * MS;
    done(end->txn.id, true, false, 30);
    changed(WATCH_HEAD, entry_of(KEY_HEAD, 30, &head));
    exited(0, 15);
    reaped();
    assert_null(find_put(KEY_HEAD, NULL));
    head.head.phase = HEAD_CLOSED;
    head.head.outcome = OUTCOME_FAILED;
    changed(WATCH_HEAD, entry_of(KEY_HEAD, 32, &head));
    done(need(ACTION_TXN)->txn.id, true, true, 33);
    const struct action *exit = need(ACTION_EXIT);
    assert_int_equal(exit->exit.failure->rank, 7);
    assert_string_equal(exit->exit.failure->node, "other");
    assert_non_null(strstr(exit->exit.text, "rank 7"));
}

static void test_a_membership_change_gives_the_workers_the_full_grace(void **state) {
    (void)state;
    union value head = head_of(HEAD_FORM, 2, 1);
    work();
    head.head.cause = CAUSE_MEMBERSHIP;
    changed(WATCH_HEAD, entry_of(KEY_HEAD, 30, &head));
    assert_int_equal(need(ACTION_STOP)->stop.grace_ms, 30000);
    assert_false(port_needed);
    exited(0, 15);
    exited(1, 15);
    reaped();
    assert_null(find_put(KEY_HEAD, NULL)); /* stopped workers are nobody's failure */
}

static void test_workers_that_all_exit_zero_are_done_and_wait_in_the_barrier(void **state) {
    (void)state;
    work();
    exited(0, 0);
    exited(1, 0);
    assert_null(find_put(KEY_DONE, NULL)); /* not before nothing of them is left */
    reaped();
    const struct action *txn = find_put(KEY_DONE, NULL);
    assert_int_equal(txn->txn.txn.ops[0].key.round, 1);
    done(txn->txn.id, true, true, 31);
    tick(500 * MS);
    need(ACTION_BEAT);
    union value head = head_of(HEAD_CLOSED, 1, 1);
    head.head.outcome = OUTCOME_SUCCEEDED;
    changed(WATCH_HEAD, entry_of(KEY_HEAD, 32, &head));
    assert_null(find(ACTION_EXIT)); /* first the session is given back */
    done(need(ACTION_TXN)->txn.id, true, true, 33);
    assert_int_equal(need(ACTION_EXIT)->exit.code, 0);
}

/* Another attempt removes it, or writes on: its outcome is what this agent ends with. */
static void test_a_run_that_was_seen_closed_stays_so(void **state) {
    (void)state;
    union value closed = head_of(HEAD_CLOSED, 1, 1), other = head_of(HEAD_FORM, 2, 1);
    closed.head.outcome = OUTCOME_SUCCEEDED;
    work();
    changed(WATCH_HEAD, entry_of(KEY_HEAD, 32, &closed));
    changed(WATCH_HEAD, entry_of(KEY_HEAD, 40, &other));
    changed(WATCH_HEAD, entry_of(KEY_HEAD, 41, NULL));
    assert_int_equal(r->head.phase, HEAD_CLOSED);
}

/* How often the last step claims it, of round 1. */
static int claims(const char *what) {
    int n = 0;
    for (size_t i = 0; i < n_actions; i++)
        n += actions[i].kind == ACTION_CLAIM && actions[i].claim.round == 1 &&
             strcmp(actions[i].claim.what, what) == 0;
    return n;
}

static void guard_dead(int64_t pid, int status, bool fenced) {
    step((struct event){.kind = EVENT_GUARD_DEAD,
                        .guard_dead = {.pid = pid, .wait_status = status, .fenced = fenced}});
}

static void test_a_guard_dead_by_its_timer_is_a_fence_not_a_failure(void **state) {
    (void)state;
    const union value *v = NULL;
    work();
    guard_dead(7, 9, true);
    assert_non_null(find_put(KEY_HEAD, &v));
    assert_int_equal(v->head.cause, CAUSE_MEMBERSHIP);
    assert_true(r->group.fenced);
    assert_int_equal(claims(CLAIM_FENCED), 1);
}

/* The guard has ended them at the last moment, and the agent is back in time. */
static void test_workers_that_the_guard_has_ended_are_told_as_fenced(void **state) {
    (void)state;
    work();
    exited(0, 9);
    exited(1, 9);
    step((struct event){.kind = EVENT_GROUP_REAPED, .reaped = {.fenced = true}});
    assert_int_equal(claims(CLAIM_FENCED), 1);
    assert_non_null(strstr(need(ACTION_LOG)->log, "the guard has ended the workers"));
}

static void test_that_workers_are_fenced_is_told_once(void **state) {
    (void)state;
    work();
    now_ns += 20000 * MS; /* with no beat */
    exited(0, 9);
    assert_int_equal(claims(CLAIM_FENCED), 1);
    exited(1, 9);
    step((struct event){.kind = EVENT_GROUP_REAPED, .reaped = {.fenced = true}});
    assert_int_equal(claims(CLAIM_FENCED), 0);
}

static void test_a_guard_dead_by_anything_else_is_a_failure_that_names_it(void **state) {
    (void)state;
    static const struct {
        int status;
        const char *text;
    } ends[] = {{9, "(pid 7) was killed by signal 9"}, {1 << 8, "(pid 7) exited with code 1"}};
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        const union value *v = NULL;
        work();
        exited(0, 0); /* the other one still works */
        guard_dead(7, ends[i].status, false);
        assert_non_null(find_put(KEY_HEAD, &v));
        assert_int_equal(v->head.cause, CAUSE_FAILURE);
        assert_string_equal(v->head.failure.uid, r->session.uid);
        assert_int_equal(v->head.failure.rank, -1);
        assert_int_equal(v->head.failure.pid, 7);
        assert_non_null(strstr(v->head.failure.error, ends[i].text));
        assert_false(r->group.fenced);
        union value head = head_of(HEAD_CLOSED, 1, 1);
        head.head.outcome = OUTCOME_FAILED;
        head.head.failure = v->head.failure;
        changed(WATCH_HEAD, entry_of(KEY_HEAD, 32, &head));
        done(need(ACTION_TXN)->txn.id, true, true, 33);
        assert_int_equal(need(ACTION_EXIT)->exit.code, 1);
        assert_non_null(strstr(need(ACTION_EXIT)->exit.text, ends[i].text));
        script_end(NULL);
    }
}

/* What failed first stays what failed; a guard that is killed as its workers are stopped makes
 * their failure no matter of membership, which would be free. */
static void test_a_guard_that_dies_while_workers_are_stopped_changes_nothing(void **state) {
    (void)state;
    work();
    exited(0, 3 << 8);
    guard_dead(7, 9, false);
    assert_false(r->group.fenced);
    assert_int_equal(r->group.failure.local_rank, 0);
}

static void test_a_guard_that_dies_when_all_workers_are_done_undoes_nothing(void **state) {
    (void)state;
    work();
    exited(0, 0);
    exited(1, 0);
    guard_dead(7, 9, false);
    assert_non_null(find_put(KEY_DONE, NULL));
}

static void test_workers_that_cannot_be_killed_end_the_agent(void **state) {
    (void)state;
    work();
    signaled(15);
    for (int i = 0; i < 400 && !find(ACTION_EXIT); i++) {
        const struct action *b = find(ACTION_BEAT);
        if (b)
            beat(b->beat.seq, BEAT_APPLIED);
        else
            tick(500 * MS);
    }
    assert_int_equal(need(ACTION_EXIT)->exit.code, 1);
    assert_non_null(strstr(need(ACTION_EXIT)->exit.text, "cannot be killed"));
    assert_null(find_put(KEY_GONE, NULL));
}

/* Killed before its exec, with its guard, or with a report that was lost. */
static void test_a_group_that_ends_without_a_word_is_nobodys_failure(void **state) {
    (void)state;
    const union value *v = NULL;
    work();
    reaped();
    assert_non_null(find_put(KEY_HEAD, &v));
    assert_int_equal(v->head.cause, CAUSE_MEMBERSHIP);
    assert_true(r->group.fenced);
    assert_int_equal(claims(CLAIM_FENCED), 1);
}

static void test_what_the_guard_says_out_of_turn_is_nothing(void **state) {
    (void)state;
    work();
    step((struct event){.kind = EVENT_WORKERS_STARTED});
    assert_null(find(ACTION_CLAIM));
    struct event ev = {.kind = EVENT_PORT, .port = {.addr = "10.0.0.9", .port = 9}};
    step(ev);
    assert_int_equal(r->group.state, GROUP_RUNNING);
}

/* The round that the head names has begun and ended while this agent was away from the store. */
static void test_a_head_of_a_round_below_the_floor_starts_nothing(void **state) {
    (void)state;
    join();
    form(1, 0, 20);
    r->group.floor = 3;
    run(1, 25);
    assert_null(find(ACTION_START));
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_teardown(name, script_end)
    const struct CMUnitTest tests[] = {
        TEST(test_the_workers_are_told_what_head_and_plan_say),
        TEST(test_a_round_below_an_own_ack_is_never_started),
        TEST(test_a_failed_worker_ends_the_round_and_the_group),
        TEST(test_of_two_failures_the_one_that_reached_the_store_first_is_named),
        TEST(test_a_membership_change_gives_the_workers_the_full_grace),
        TEST(test_workers_that_all_exit_zero_are_done_and_wait_in_the_barrier),
        TEST(test_a_run_that_was_seen_closed_stays_so),
        TEST(test_a_guard_dead_by_its_timer_is_a_fence_not_a_failure),
        TEST(test_workers_that_the_guard_has_ended_are_told_as_fenced),
        TEST(test_that_workers_are_fenced_is_told_once),
        TEST(test_a_guard_dead_by_anything_else_is_a_failure_that_names_it),
        TEST(test_a_guard_that_dies_while_workers_are_stopped_changes_nothing),
        TEST(test_a_guard_that_dies_when_all_workers_are_done_undoes_nothing),
        TEST(test_workers_that_cannot_be_killed_end_the_agent),
        TEST(test_a_group_that_ends_without_a_word_is_nobodys_failure),
        TEST(test_what_the_guard_says_out_of_turn_is_nothing),
        TEST(test_a_head_of_a_round_below_the_floor_starts_nothing),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
