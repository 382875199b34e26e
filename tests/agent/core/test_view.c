#include "agent/core/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct view v;
static int64_t revision;

static struct entry entry_of(enum key_kind kind, const char *uid, const union value *value) {
    struct entry e = {.key = {.kind = kind}, .value = value, .deleted = !value};
    snprintf(e.key.uid, sizeof(e.key.uid), "%s", uid);
    snprintf(e.key.pid, sizeof(e.key.pid), "%s", kind == KEY_PLAN ? "1-1-1" : "");
    e.create_revision = e.mod_revision = ++revision;
    return e;
}

static void put(enum key_kind kind, const char *uid, int64_t round, const union value *value) {
    struct entry e = entry_of(kind, uid, value);
    e.key.round = round;
    view_apply(&v, &e, 1000);
    view_settle(&v);
}

/* Round 1 of a and b runs. */
static int setup(void **state) {
    (void)state;
    union value head = {.head = {.phase = HEAD_RUN, .round = 1, .last_round = 1, .n = 2}};
    revision = 10;
    memset(&v, 0, sizeof(v));
    for (int i = 0; i < 2; i++) {
        union value session = {0}, member = {.member = {.slots = 1}}, plan = {0};
        const char *uid = i ? "b" : "a";
        put(KEY_SESSION, uid, 0, &session);
        snprintf(member.member.node, sizeof(member.member.node), "node %s", uid);
        put(KEY_MEMBER, uid, 0, &member);
        plan.plan.group_rank = i;
        put(KEY_PLAN, uid, 0, &plan);
    }
    strcpy(head.head.pid, "1-1-1");
    strcpy(head.head.last_pid, "1-1-1");
    head.head.last_n = 2;
    put(KEY_HEAD, "", 0, &head);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    view_fini(&v);
    return 0;
}

static void test_what_is_older_than_the_view_is_not_taken(void **state) {
    (void)state;
    struct entry e = entry_of(KEY_SESSION, "a", NULL);
    e.mod_revision = 5;
    view_apply(&v, &e, 1000);
    assert_true(view_find(&v, "a")->session);
}

static void test_an_entry_of_a_plan_that_comes_twice_is_one(void **state) {
    (void)state;
    union value plan = {.plan = {.group_rank = 1}};
    put(KEY_PLAN, "b", 0, &plan);
    assert_int_equal(view_plan(&v, "1-1-1")->n, 2);
}

/* It is taken away with all that a later round does not need, when there is one. */
static void test_an_ack_that_is_deleted_was_said_all_the_same(void **state) {
    (void)state;
    union value ack = {.ack = {.why = ACK_OK}};
    put(KEY_ACK, "a", 1, &ack);
    put(KEY_ACK, "a", 1, NULL);
    assert_true(view_find(&v, "a")->acked);
}

static void test_keys_of_the_store_and_of_the_run_say_nothing_of_members(void **state) {
    (void)state;
    union value any = {.cur = {.min = 1}};
    size_t n = v.n;
    put(KEY_CUR, "", 0, &any);
    put(KEY_QUARANTINE, "", 0, &any);
    assert_int_equal(v.n, n);
    assert_true(v.revision == revision);
}

/* One is not known any more, its place in the last round is. */
static void test_a_node_returns_only_if_it_is_known_who_was_there(void **state) {
    (void)state;
    union value session = {0}, member = {.member = {.slots = 1, .node = "node b"}};
    put(KEY_SESSION, "b", 0, NULL);
    put(KEY_SESSION, "c", 0, &session);
    put(KEY_MEMBER, "c", 0, &member);
    assert_true(view_find(&v, "c")->returned);
    put(KEY_MEMBER, "b", 0, NULL);
    assert_false(view_find(&v, "c")->returned);
}

static void test_an_empty_view_is_copied_too(void **state) {
    (void)state;
    struct view empty = {0}, copy;
    view_copy(&copy, &empty);
    assert_int_equal(copy.n + copy.n_plans, 0);
    view_fini(&copy);
    view_copy(&copy, &v);
    assert_int_equal(copy.n, 2);
    assert_ptr_not_equal(view_find(&copy, "a"), view_find(&v, "a"));
    assert_ptr_equal(view_plan(&copy, "1-1-1")->entries[0].member, view_find(&copy, "a"));
    view_fini(&copy);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_older_than_the_view_is_not_taken),
        TEST(test_an_entry_of_a_plan_that_comes_twice_is_one),
        TEST(test_an_ack_that_is_deleted_was_said_all_the_same),
        TEST(test_keys_of_the_store_and_of_the_run_say_nothing_of_members),
        TEST(test_a_node_returns_only_if_it_is_known_who_was_there),
        TEST(test_an_empty_view_is_copied_too),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
