#include "agent/core/kv_request.h"
#include "harness/explore/copy_on_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct explore_config quiet(int agents) {
    struct explore_config c;
    explore_config_default(agents, &c);
    memset(c.bounds, 0, sizeof(c.bounds));
    c.together = 1;
    return c;
}

static void test_a_job_that_is_left_alone_always_ends(void **state) {
    (void)state;
    for (int agents = 1; agents <= 3; agents++) {
        struct explore_config c = quiet(agents);
        struct explore_result r;
        explore_run(&c, &r);
        assert_string_equal(r.text, "");
        assert_int_equal(r.end, EXPLORE_COMPLETE);
        assert_true(r.ends > 0 && r.states > 20 && r.transitions > r.states);
        assert_null(r.path);
    }
}

static void test_the_start_of_a_job_in_every_order(void **state) {
    (void)state;
    struct explore_config c = quiet(2);
    struct explore_result here, start;
    explore_run(&c, &here);
    c.from_start = true;
    explore_run(&c, &start);
    assert_int_equal(start.end, EXPLORE_COMPLETE);
    assert_true(start.states > here.states);
}

static void test_one_fault_of_a_kind_at_any_point_breaks_nothing(void **state) {
    (void)state;
    static const char *const kinds[] = {"agent-join",  "agent-kill", "agent-leave",
                                        "answer-lost", "watch-lost", "worker-fail"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct explore_config c = quiet(2);
        struct explore_result r;
        c.bounds[explore_bound_find(kinds[i])] = 1;
        explore_run(&c, &r);
        assert_string_equal(r.text, "");
        assert_int_equal(r.end, EXPLORE_COMPLETE);
    }
}

/* Of one node: its first request that waits to be applied; -1: none. */
static int request_of(const struct world *w, int node) {
    struct choice all[CHOICES_MAX];
    int n = choice_list(w, all);
    for (int i = 0; i < n; i++)
        if (all[i].kind == CHOICE_SERVE && all[i].node == node &&
            w->nodes[node].pending[all[i].arg].message->kind == ACTION_TXN)
            return all[i].arg;
    return -1;
}

/* All agents hear of what there is to hear. */
static void hear_all(struct world *w) {
    struct choice all[CHOICES_MAX];
    for (;;) {
        choice_list(w, all);
        bool reads = all[0].kind == CHOICE_SERVE &&
                     w->nodes[all[0].node].pending[all[0].arg].message->kind != ACTION_TXN;
        if (all[0].kind != CHOICE_HEAR && !reads)
            return;
        choice_take(w, all[0]);
    }
}

static uint64_t after_acks(const struct world *from, int first, int second) {
    struct world *w = world_copy(from);
    int nodes[] = {first, second};
    for (int i = 0; i < 2; i++) {
        choice_take(
            w, (struct choice){CHOICE_SERVE, (uint8_t)nodes[i], (uint8_t)request_of(w, nodes[i])});
        hear_all(w);
    }
    uint64_t fingerprint = world_fingerprint(w);
    world_free(w);
    return fingerprint;
}

static void test_in_which_order_two_agents_ack_makes_no_states(void **state) {
    (void)state;
    struct explore_config c = quiet(3);
    struct world *w = world_new(&c, false);
    hear_all(w);
    assert_int_equal(w->judge.head.phase, HEAD_FORM);
    assert_true(request_of(w, 1) >= 0 && request_of(w, 2) >= 0);
    assert_int_equal(after_acks(w, 1, 2), after_acks(w, 2, 1));
    assert_int_not_equal(after_acks(w, 1, 2), after_acks(w, 1, 0));
    world_free(w);
}

static void ends_with_three(struct world *w) {
    judge_exit(world_judge(w), 0, 3);
}

static void stops_for_nothing(struct world *w) {
    judge_stop(world_judge(w), 0, &(struct judged_stop){0});
}

static void starts_without_a_master(struct world *w) {
    struct round_spec s = {
        .round = 9, .world = 4, .local_world = 2, .master_addr = "", .token = "t"};
    for (int i = 0; i < 2; i++)
        w->nodes[i].shown.group.alive = false;
    judge_start(world_judge(w), 0, &s);
}

static void certifies_twice(struct world *w) {
    union value v = {.gone = {GONE_LEFT}};
    struct op op = {.key = {.kind = KEY_GONE}, .put = true, .value = &v};
    struct arena a = {0};
    memcpy(op.key.inc, w->judge.inc, sizeof(op.key.inc));
    strcpy(op.key.uid, "x");
    struct txn put = {.ops = &op, .n_ops = 1};
    for (int i = 0; i < 2; i++) {
        struct kv_txn txn = kv_request_txn(&a, "job", &put, kv_request_plain);
        struct kv_txn_result r;
        assert_int_equal(kv_txn(world_store(w), &txn, &a, &r, NULL), 0);
        judge_txn(world_judge(w), "x", &op, 1);
    }
    arena_fini(&a);
}

/* The first choice again and again, until a round runs with its workers. */
static struct world *running(const struct explore_config *c) {
    struct world *w = world_new(c, false);
    struct choice all[CHOICES_MAX];
    while (!w->whole_round) {
        assert_true(choice_list(w, all) > 0);
        choice_take(w, all[0]);
        assert_false(w->violated);
    }
    return w;
}

static void test_every_state_is_judged_by_the_simulators_invariants(void **state) {
    (void)state;
    static const struct {
        const char *begins;
        void (*plant)(struct world *w);
    } rows[] = {{"I6 outcome: ", ends_with_three},
                {"I5 undisturbed: ", stops_for_nothing},
                {"I2 master: ", starts_without_a_master},
                {"I7 certified_once: ", certifies_twice}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct explore_config c = quiet(2);
        struct world *w = running(&c);
        rows[i].plant(w);
        assert_true(w->violated);
        if (strncmp(w->text, rows[i].begins, strlen(rows[i].begins)) != 0)
            fail_msg("not \"%s\" but \"%s\"", rows[i].begins, w->text);
        world_free(w);
    }
}

static void test_three_agents_one_of_which_leaves(void **state) {
    (void)state;
    struct explore_config c = quiet(3);
    struct explore_result r;
    c.min = 3;
    c.bounds[explore_bound_find("agent-leave")] = 1;
    explore_run(&c, &r);
    assert_string_equal(r.text, "");
    assert_int_equal(r.end, EXPLORE_COMPLETE);
}

/* Which of two faults that are used up was taken makes no difference any more. */
static void test_a_fault_that_may_not_be_taken_makes_no_states(void **state) {
    (void)state;
    struct explore_config c = quiet(2);
    struct explore_result one, more;
    c.together = 0;
    explore_run(&c, &one);
    for (int i = 0; i < EXPLORE_BOUNDS_N; i++)
        c.bounds[i] = i == explore_bound_find("agent-join") ? 0 : 9;
    explore_run(&c, &more);
    assert_int_equal(one.end, EXPLORE_COMPLETE);
    assert_int_equal(one.states, more.states);
    assert_int_equal(one.transitions, more.transitions);
}

/* When what waits fills the memory, the newest come first; that all are seen stays true. */
static void test_the_states_are_the_same_in_any_order(void **state) {
    (void)state;
    struct explore_config c = quiet(2);
    struct explore_result wide, deep;
    c.bounds[explore_bound_find("agent-kill")] = 1;
    explore_run(&c, &wide);
    c.memory_max = 3300 << 10;
    explore_run(&c, &deep);
    assert_int_equal(deep.end, EXPLORE_COMPLETE);
    assert_int_equal(deep.states, wide.states);
    assert_int_equal(deep.transitions, wide.transitions);
    assert_int_equal(deep.ends, wide.ends);
    assert_true(deep.depth > wide.depth);
}

static void test_the_same_search_twice_is_the_same(void **state) {
    (void)state;
    struct explore_config c = quiet(2);
    struct explore_result a, b;
    c.bounds[explore_bound_find("agent-kill")] = 1;
    explore_run(&c, &a);
    explore_run(&c, &b);
    assert_memory_equal(&a, &b, sizeof(a));
}

static void test_a_limit_is_said_and_not_taken_for_all(void **state) {
    (void)state;
    struct explore_config c = quiet(2);
    struct explore_result r;
    c.states_max = 100;
    explore_run(&c, &r);
    assert_int_equal(r.end, EXPLORE_LIMIT);
    c = quiet(2);
    c.memory_max = 1;
    explore_run(&c, &r);
    assert_int_equal(r.end, EXPLORE_LIMIT);
}

static bool stop(void *arg, uint64_t states, uint64_t waiting, int depth) {
    (void)states, (void)waiting, (void)depth;
    (*(int *)arg)++;
    return false;
}

static void test_a_search_can_be_stopped(void **state) {
    (void)state;
    struct explore_config c = quiet(2);
    struct explore_result r;
    int told = 0;
    c.seen = stop;
    c.arg = &told;
    explore_run(&c, &r);
    assert_int_equal(r.end, EXPLORE_STOPPED);
    assert_int_equal(told, 1);
}

static void test_a_path_that_cannot_be_taken_is_named(void **state) {
    (void)state;
    struct explore_config c = quiet(2);
    struct explore_result r;
    assert_false(explore_replay(&c, "jump 0 0\n", &r));
    assert_string_equal(r.text, "line 1: \"jump 0 0\" is no choice");
    assert_false(explore_replay(&c, "# first\nkill 0 0\n", &r));
    assert_string_equal(r.text, "line 2: \"kill 0 0\" is not possible there");
    c.bounds[explore_bound_find("agent-kill")] = 1;
    assert_true(explore_replay(&c, "kill 0 0\n", &r));
    assert_int_equal(r.end, EXPLORE_STOPPED);
}

static void test_bounds_are_found_and_in_order(void **state) {
    (void)state;
    for (int i = 0; i < EXPLORE_BOUNDS_N; i++) {
        assert_int_equal(explore_bound_find(explore_bounds()[i].name), i);
        assert_true(!i || strcmp(explore_bounds()[i - 1].name, explore_bounds()[i].name) < 0);
    }
    assert_int_equal(explore_bound_find("meteor"), -1);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job_that_is_left_alone_always_ends),
        cmocka_unit_test(test_the_start_of_a_job_in_every_order),
        cmocka_unit_test(test_one_fault_of_a_kind_at_any_point_breaks_nothing),
        cmocka_unit_test(test_in_which_order_two_agents_ack_makes_no_states),
        cmocka_unit_test(test_every_state_is_judged_by_the_simulators_invariants),
        cmocka_unit_test(test_three_agents_one_of_which_leaves),
        cmocka_unit_test(test_a_fault_that_may_not_be_taken_makes_no_states),
        cmocka_unit_test(test_the_states_are_the_same_in_any_order),
        cmocka_unit_test(test_the_same_search_twice_is_the_same),
        cmocka_unit_test(test_a_limit_is_said_and_not_taken_for_all),
        cmocka_unit_test(test_a_search_can_be_stopped),
        cmocka_unit_test(test_a_path_that_cannot_be_taken_is_named),
        cmocka_unit_test(test_bounds_are_found_and_in_order),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
