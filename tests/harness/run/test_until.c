/* The end of a fault that lasts, when something has come true. */
#include "harness/run/timeline.h"
#include "tests/harness/run/stage.h"

static struct trigger *end_with(struct stage *s, struct timeline_entry *a) {
    struct trigger *t = arena_new(&s->engine.arena, struct trigger);
    t->after = -1;
    t->ends = true;
    a->until = t;
    return t;
}

/* n2 is cut off at step 5 of its worker. */
static struct timeline_entry *cut_n2(struct stage *s) {
    struct timeline_entry *a = stage_add(s, "c", &cut);
    at_step(a, 5);
    aim_at_node(a, "n2");
    return a;
}

static void test_a_fault_ends_with_the_round_that_was_named(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct trigger *until = end_with(s, cut_n2(s));
    until->has_round = true;
    until->round = 2;
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 102, 5);
    assert_int_equal(count_records(s, "fault-in-force", "c"), 1);
    assert_int_equal(count_records(s, "fault-recovered", "c"), 0);
    start_round(s, 2, 2);
    assert_int_equal(count_records(s, "fault-recovered", "c"), 1);
    stage_end(s);
    assert_int_equal(count_records(s, "fault-recovered", "c"), 1);
    assert_int_equal(count_records(s, "fault-not-fired", "c"), 0);
    stage_free(s);
}

static void test_an_end_that_does_not_come_is_no_failure_and_the_fault_lasts(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct trigger *until = end_with(s, cut_n2(s));
    until->has_step = true;
    until->step = 500;
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 102, 5);
    assert_int_equal(count_records(s, "fault-recovered", "c"), 0);
    stage_end(s);
    assert_int_equal(count_records(s, "fault-recovered", "c"), 1);
    assert_int_equal(count_records(s, "fault-not-fired", "c"), 0);
    stage_free(s);
}

static void test_a_step_of_anybody_ends_it_and_is_held_until_then(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct trigger *until = end_with(s, cut_n2(s));
    until->has_step = until->hold = true;
    until->step = 9;
    stage_begin(s);
    start_round(s, 1, 3);
    assert_int_equal(say_step(s, 100, 9), 0); /* it has not begun */
    assert_int_equal(s->observer.next_step, 5);
    say_step(s, 102, 5);
    assert_int_equal(s->observer.next_step, 9);
    int tag = say_step(s, 101, 9);
    assert_true(tag > 1);
    assert_true(s->observer.released[tag] > 0);
    assert_int_equal(count_records(s, "fault-recovered", "c"), 1);
    assert_int_equal(s->observer.kinds, 0);
    stage_free(s);
}

static void test_another_line_below_may_end_it(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct trigger *until = end_with(s, cut_n2(s));
    until->after = 1;
    struct timeline_entry *kill = stage_add(s, "k", &kill_node);
    at_step(kill, 8);
    aim_at_node(kill, "n0");
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 102, 5);
    assert_int_equal(count_records(s, "fault-recovered", "c"), 0);
    say_step(s, 100, 8);
    assert_int_equal(count_records(s, "fault-in-force", "k"), 1);
    assert_int_equal(count_records(s, "fault-recovered", "c"), 1);
    stage_free(s);
}

static void test_what_is_healed_by_hand_no_longer_waits_for_its_end(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = cut_n2(s);
    struct trigger *until = end_with(s, a);
    until->has_step = until->hold = true;
    until->step = 9;
    struct timeline_entry *heal = stage_add(s, "h", NULL);
    heal->heal = 0;
    at_step(heal, 7);
    heal->on = (struct target_spec){.what = TARGET_WORKERS};
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 102, 5);
    say_step(s, 100, 7);
    assert_int_equal(count_records(s, "fault-recovered", "c"), 1);
    assert_int_equal(s->observer.kinds, 0);
    assert_int_equal(say_step(s, 101, 9), 0);
    assert_int_equal(count_records(s, "fault-recovered", "c"), 1);
    assert_int_equal(count_records(s, "heal-idle", "h"), 0);
    stage_free(s);
}

static void test_a_heal_says_when_there_is_nothing_to_end(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = cut_n2(s);
    struct trigger *until = end_with(s, a);
    until->has_step = true;
    until->step = 6;
    struct timeline_entry *heal = stage_add(s, "h", NULL), *early = stage_add(s, "e", NULL);
    heal->heal = early->heal = 0;
    at_step(heal, 7);
    at_step(early, 3);
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 102, 3);
    assert_int_equal(count_records(s, "heal-idle", "e"), 1);
    say_step(s, 102, 5);
    say_step(s, 100, 6);
    say_step(s, 100, 7);
    assert_int_equal(count_records(s, "fault-recovered", "c"), 1);
    assert_int_equal(count_records(s, "heal-idle", "h"), 1);
    stage_free(s);
}

static void test_a_fault_that_comes_again_ends_again(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = cut_n2(s);
    a->times_n = 2;
    struct trigger *until = end_with(s, a);
    until->has_step = true;
    until->step = 9;
    stage_begin(s);
    start_round(s, 1, 3);
    for (int i = 1; i <= 2; i++) {
        say_step(s, 102, 5);
        assert_int_equal(count_records(s, "fault-in-force", "c"), i);
        say_step(s, 100, 9);
        assert_int_equal(count_records(s, "fault-recovered", "c"), i);
    }
    stage_end(s);
    assert_int_equal(count_records(s, "fault-not-fired", "c"), 0);
    stage_free(s);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fault_ends_with_the_round_that_was_named),
        cmocka_unit_test(test_an_end_that_does_not_come_is_no_failure_and_the_fault_lasts),
        cmocka_unit_test(test_a_step_of_anybody_ends_it_and_is_held_until_then),
        cmocka_unit_test(test_another_line_below_may_end_it),
        cmocka_unit_test(test_what_is_healed_by_hand_no_longer_waits_for_its_end),
        cmocka_unit_test(test_a_heal_says_when_there_is_nothing_to_end),
        cmocka_unit_test(test_a_fault_that_comes_again_ends_again),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
