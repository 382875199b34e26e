/* Order, ranks, certificates and cost, each on a view made by hand. */
#include "agent/core/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct rendezvous *r;
static int64_t revision;

static struct view *view(void) {
    return &r->coordinator.view;
}

static void put(enum key_kind kind, const char *uid, int64_t round, const union value *v) {
    struct entry e = {.key = {.kind = kind, .round = round}, .value = v};
    snprintf(e.key.uid, sizeof(e.key.uid), "%s", uid);
    e.create_revision = e.mod_revision = ++revision;
    e.deleted = v == NULL;
    view_apply(view(), &e, 1000);
    view_settle(view());
}

static enum member_want want;

static void join(const char *uid, const char *node, const char *role, int slots) {
    union value v = {0};
    put(KEY_SESSION, uid, 0, &v);
    snprintf(v.member.node, sizeof(v.member.node), "%s", node);
    snprintf(v.member.role, sizeof(v.member.role), "%s", role);
    v.member.slots = slots;
    v.member.want = want;
    put(KEY_MEMBER, uid, 0, &v);
}

static void stand_by(const char *uid, const char *node) {
    want = WANT_STANDBY;
    join(uid, node, "default", 1);
    want = WANT_MEMBER;
}

static void leave(const char *uid) {
    union value v = {0};
    put(KEY_SESSION, uid, 0, NULL);
    put(KEY_GONE, uid, 0, &v);
}

/* uids: one letter each. */
static void plan(const char *pid, const char *uids) {
    for (int i = 0; uids[i]; i++) {
        char uid[2] = {uids[i], 0};
        union value v = {.plan = {.group_rank = i}};
        struct entry e = {.key = {.kind = KEY_PLAN}, .value = &v};
        snprintf(e.key.uid, sizeof(e.key.uid), "%s", uid);
        snprintf(e.key.pid, sizeof(e.key.pid), "%s", pid);
        e.create_revision = e.mod_revision = ++revision;
        view_apply(view(), &e, 1000);
    }
}

static void head(enum head_phase phase, int64_t round, const char *uids, enum head_cause cause) {
    union value v = {.head = {.phase = phase, .round = round, .cause = cause}};
    char pid[PID_SIZE];
    snprintf(pid, sizeof(pid), "%lld-1-1", (long long)round);
    plan(pid, uids);
    memcpy(v.head.pid, pid, sizeof(pid));
    v.head.n = (int)strlen(uids);
    if (phase == HEAD_RUN || phase == HEAD_END) {
        v.head.last_round = round;
        v.head.last_n = v.head.n;
        memcpy(v.head.last_pid, pid, sizeof(pid));
    }
    put(KEY_HEAD, "", 0, &v);
}

static void ack(const char *uid, int64_t round, enum ack_why why) {
    union value v = {.ack = {.why = why}};
    put(KEY_ACK, uid, round, &v);
}

static const char *wanted(void) {
    static char order[16];
    struct wanted w = membership_wanted(r);
    memset(order, 0, sizeof(order));
    for (size_t i = 0; i < w.n; i++)
        order[i] = w.members[i]->uid[0];
    return order;
}

static int setup(void **state) {
    (void)state;
    r = calloc(1, sizeof(*r));
    r->cur.min = 1;
    r->cur.max = 3;
    revision = 10;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    view_fini(view());
    arena_fini(&r->arena);
    free(r);
    return 0;
}

static void test_the_first_round_is_in_the_order_of_joining(void **state) {
    (void)state;
    join("c", "n0", "default", 1);
    join("a", "n1", "default", 1);
    join("b", "n2", "default", 1);
    assert_string_equal(wanted(), "cab");
}

static void test_survivors_keep_their_order_and_a_spare_comes_last(void **state) {
    (void)state;
    join("s", "n9", "default", 1);
    join("c", "n0", "default", 1);
    join("a", "n1", "default", 1);
    join("b", "n2", "default", 1);
    head(HEAD_RUN, 1, "bac", CAUSE_NONE);
    assert_string_equal(wanted(), "bac"); /* max 3: the spare waits, though it joined first */
    leave("b");
    assert_true(membership_lost(view()));
    assert_string_equal(wanted(), "acs");
}

static void test_a_node_that_comes_back_is_before_a_stranger(void **state) {
    (void)state;
    join("a", "n0", "default", 1);
    join("b", "n1", "default", 1);
    head(HEAD_RUN, 1, "ab", CAUSE_NONE);
    leave("a");
    join("x", "n7", "default", 1);
    join("y", "n0", "default", 1);
    assert_string_equal(wanted(), "byx");
}

static void test_a_session_that_ended_is_not_wanted(void **state) {
    (void)state;
    join("a", "n0", "default", 1);
    put(KEY_SESSION, "a", 0, NULL);
    assert_string_equal(wanted(), "");
}

static void test_the_loss_of_a_member_that_is_done_is_none(void **state) {
    (void)state;
    union value done = {.done = {.round = 1}};
    join("a", "n0", "default", 1);
    join("b", "n1", "default", 1);
    head(HEAD_RUN, 1, "ab", CAUSE_NONE);
    put(KEY_DONE, "a", 1, &done);
    leave("a");
    assert_false(membership_lost(view()));
    leave("b");
    assert_true(membership_lost(view()));
}

static void test_a_spare_is_taken_up_to_min_only(void **state) {
    (void)state;
    stand_by("s", "n9");
    join("a", "n0", "default", 1);
    assert_string_equal(wanted(), "a");
    r->cur.min = 2;
    assert_string_equal(wanted(), "as"); /* it joined first, and is last */
    join("b", "n1", "default", 1);
    assert_string_equal(wanted(), "ab");
}

static void test_a_spare_takes_the_place_of_a_lost_member_and_then_is_one(void **state) {
    (void)state;
    stand_by("s", "n8");
    stand_by("t", "n9");
    join("a", "n0", "default", 1);
    join("b", "n1", "default", 1);
    head(HEAD_RUN, 1, "ab", CAUSE_NONE);
    assert_string_equal(wanted(), "ab"); /* max is 3: it does not make the job larger */
    leave("a");
    assert_string_equal(wanted(), "bs");
    head(HEAD_RUN, 2, "bs", CAUSE_NONE);
    assert_string_equal(wanted(), "bs");
    join("c", "n2", "default", 1);
    assert_string_equal(wanted(), "bsc");
}

static void test_a_member_that_comes_is_before_a_spare(void **state) {
    (void)state;
    r->cur.max = 2;
    stand_by("s", "n9");
    join("a", "n0", "default", 1);
    join("b", "n1", "default", 1);
    head(HEAD_RUN, 1, "ab", CAUSE_NONE);
    leave("b");
    join("c", "n2", "default", 1);
    assert_string_equal(wanted(), "ac");
}

static void test_who_is_missed_was_in_the_last_round_and_not_done(void **state) {
    (void)state;
    union value done = {.done = {.round = 1}};
    join("a", "n0", "default", 1);
    join("b", "n1", "default", 1);
    join("c", "n2", "default", 1);
    head(HEAD_RUN, 1, "ab", CAUSE_NONE);
    leave("c");
    assert_null(membership_missed(view()));
    put(KEY_DONE, "a", 1, &done);
    leave("a");
    assert_null(membership_missed(view()));
    leave("b");
    assert_ptr_equal(membership_missed(view()), view_find(view(), "b"));
}

static void test_newcomers_are_those_who_would_be_taken(void **state) {
    (void)state;
    int64_t joined_ns;
    join("a", "n0", "default", 1);
    head(HEAD_RUN, 1, "a", CAUSE_NONE);
    struct wanted w = membership_wanted(r);
    assert_false(membership_newcomers(&w, &joined_ns));
    join("b", "n1", "default", 1);
    w = membership_wanted(r);
    assert_true(membership_newcomers(&w, &joined_ns));
    assert_int_equal(joined_ns, 1000);
    r->cur.max = 1;
    w = membership_wanted(r);
    assert_false(membership_newcomers(&w, &joined_ns));
}

/* torchelastic's golden vector: five nodes of two roles, contiguous ranks, ranks per role. */
static void test_ranks_run_on_over_nodes_and_per_role(void **state) {
    (void)state;
    struct plan_value p[5];
    r->cur.max = 5;
    join("a", "n0", "ps", 4);
    join("b", "n1", "trainer", 1);
    join("c", "n2", "trainer", 2);
    join("d", "n3", "trainer", 3);
    join("e", "n4", "ps", 5);
    struct wanted w = membership_wanted(r);
    ranks_assign(&w, p);
    static const int bases[] = {0, 4, 5, 7, 10}, role_bases[] = {0, 0, 1, 3, 4},
                     role_worlds[] = {9, 6, 6, 6, 9};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(p[i].group_rank, i);
        assert_int_equal(p[i].world, 15);
        assert_int_equal(p[i].rank_base, bases[i]);
        assert_int_equal(p[i].role_rank_base, role_bases[i]);
        assert_int_equal(p[i].role_world, role_worlds[i]);
    }
}

static void two_in_round_one(enum head_cause cause) {
    join("a", "n0", "default", 1);
    join("b", "n1", "default", 1);
    head(HEAD_END, 1, "ab", cause);
}

static void test_every_member_owes_a_certificate(void **state) {
    (void)state;
    two_in_round_one(CAUSE_FAILURE);
    assert_false(budget_settled(view()));
    ack("a", 1, ACK_FAILED);
    ack("b", 0, ACK_OK); /* of an earlier round: says nothing */
    assert_false(budget_settled(view()));
    ack("b", 1, ACK_OK);
    assert_true(budget_settled(view()));
}

static void test_a_failure_that_all_survived_costs_one(void **state) {
    (void)state;
    two_in_round_one(CAUSE_FAILURE);
    ack("a", 1, ACK_FAILED);
    ack("b", 1, ACK_FAILED);
    assert_int_equal(budget_cost(view()), 1);
}

static void test_a_membership_change_costs_nothing(void **state) {
    (void)state;
    two_in_round_one(CAUSE_MEMBERSHIP);
    ack("a", 1, ACK_FAILED);
    ack("b", 1, ACK_OK);
    assert_int_equal(budget_cost(view()), 0);
}

static void test_a_failure_in_a_round_that_lost_a_node_costs_nothing(void **state) {
    (void)state;
    two_in_round_one(CAUSE_FAILURE);
    ack("a", 1, ACK_FAILED);
    leave("b");
    assert_true(budget_settled(view()));
    assert_int_equal(budget_cost(view()), 0);
}

static void test_a_node_that_goes_after_its_ack_was_not_lost_in_the_round(void **state) {
    (void)state;
    two_in_round_one(CAUSE_FAILURE);
    ack("a", 1, ACK_FAILED);
    ack("b", 1, ACK_OK);
    leave("b");
    assert_int_equal(budget_cost(view()), 1);
}

static void test_a_fenced_node_makes_the_round_free(void **state) {
    (void)state;
    two_in_round_one(CAUSE_FAILURE);
    ack("a", 1, ACK_FAILED);
    ack("b", 1, ACK_FENCED);
    assert_int_equal(budget_cost(view()), 0);
}

static void test_a_plan_that_somebody_deleted_settles_nothing(void **state) {
    (void)state;
    two_in_round_one(CAUSE_FAILURE);
    ack("a", 1, ACK_OK);
    ack("b", 1, ACK_OK);
    struct entry e = {.key = {.kind = KEY_PLAN}, .deleted = true};
    snprintf(e.key.pid, sizeof(e.key.pid), "1-1-1");
    snprintf(e.key.uid, sizeof(e.key.uid), "a");
    e.mod_revision = ++revision;
    view_apply(view(), &e, 1000);
    view_settle(view());
    assert_false(budget_settled(view()));
}

static void test_a_snapshot_read_again_keeps_the_time_of_silence(void **state) {
    (void)state;
    union value v = {0};
    struct entry e[2] = {{.key = {.kind = KEY_SESSION, .uid = "a"}, .value = &v},
                         {.key = {.kind = KEY_SESSION, .uid = "b"}, .value = &v}};
    e[0].mod_revision = e[0].create_revision = 5;
    e[1].mod_revision = e[1].create_revision = 6;
    view_load(view(), e, 2, 7, 100);
    e[1].mod_revision = 9; /* b has beaten in the gap, a has not */
    view_load(view(), e, 2, 10, 200);
    assert_int_equal(view_find(view(), "a")->heard_ns, 100);
    assert_int_equal(view_find(view(), "b")->heard_ns, 200);
    view_load(view(), e, 1, 11, 300);
    assert_null(view_find(view(), "b"));
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_the_first_round_is_in_the_order_of_joining),
        TEST(test_survivors_keep_their_order_and_a_spare_comes_last),
        TEST(test_a_node_that_comes_back_is_before_a_stranger),
        TEST(test_a_session_that_ended_is_not_wanted),
        TEST(test_the_loss_of_a_member_that_is_done_is_none),
        TEST(test_a_spare_is_taken_up_to_min_only),
        TEST(test_a_spare_takes_the_place_of_a_lost_member_and_then_is_one),
        TEST(test_a_member_that_comes_is_before_a_spare),
        TEST(test_who_is_missed_was_in_the_last_round_and_not_done),
        TEST(test_newcomers_are_those_who_would_be_taken),
        TEST(test_ranks_run_on_over_nodes_and_per_role),
        TEST(test_every_member_owes_a_certificate),
        TEST(test_a_failure_that_all_survived_costs_one),
        TEST(test_a_membership_change_costs_nothing),
        TEST(test_a_failure_in_a_round_that_lost_a_node_costs_nothing),
        TEST(test_a_node_that_goes_after_its_ack_was_not_lost_in_the_round),
        TEST(test_a_fenced_node_makes_the_round_free),
        TEST(test_a_plan_that_somebody_deleted_settles_nothing),
        TEST(test_a_snapshot_read_again_keeps_the_time_of_silence),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
