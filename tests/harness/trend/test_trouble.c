/* Trouble: the phase in which a fault met the job, and what it struck; and what is next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "faults/fault.h"
#include "harness/trend/trouble.h"
#include "harness/trend/worth.h"

#include <string.h>

struct fixture {
    struct history h;
    struct rounds rs;
    struct incidents is;
};

static int begin(void **state) {
    static struct fixture f;
    struct err err = {0};
    f = (struct fixture){0};
    if (history_load(&f.h, "tests/histories/worker-killed.jsonl", &err) < 0)
        fail_msg("%s", err.msg);
    rounds_load(&f.rs, true, &f.h);
    incidents_load(&f.is, &f.h, &f.rs);
    *state = &f;
    return 0;
}

static int end(void **state) {
    struct fixture *f = *state;
    incidents_fini(&f->is);
    rounds_fini(&f->rs);
    history_fini(&f->h);
    return 0;
}

static size_t number_of(const char *fault) {
    for (size_t i = 0; i < faults_n; i++)
        if (str_eq(faults[i]->name, fault))
            return i;
    fail_msg("there is no fault %s", fault);
    return 0;
}

/* The recorded fault, had it come in force then. */
static enum trouble_phase phase_at(struct fixture *f, int64_t t_ns) {
    struct incident i = *f->is.v[0];
    i.fired_ns = t_ns;
    i.targets_n = 0;
    return trouble_phase_of(&f->h, &f->is, &i);
}

static void test_the_phase_follows_from_what_the_workers_had_done(void **state) {
    struct fixture *f = *state;
    struct round *first = f->rs.v[0];
    struct incident none = *f->is.v[0];
    int64_t ready_ns = 0, stepped_ns = 0;
    for (size_t i = 0; i < first->n; i++) {
        const struct worker *w = first->workers[i];
        ready_ns = w->ready_ns > ready_ns ? w->ready_ns : ready_ns;
        stepped_ns = w->first_step_ns > stepped_ns ? w->first_step_ns : stepped_ns;
    }
    assert_true(first->first_start_ns < ready_ns && ready_ns < stepped_ns);
    assert_int_equal(phase_at(f, first->first_start_ns), TROUBLE_STARTING);
    assert_int_equal(phase_at(f, ready_ns - 1), TROUBLE_STARTING);
    assert_int_equal(phase_at(f, stepped_ns - 1), TROUBLE_LOADING);
    assert_int_equal(phase_at(f, stepped_ns), TROUBLE_TRAINING);
    assert_int_equal(phase_at(f, round_ended_ns(first)), TROUBLE_RECOVERING);
    none.round = NULL;
    assert_int_equal(trouble_phase_of(&f->h, &f->is, &none), TROUBLE_MEETING);
    none.round = f->rs.v[f->rs.n - 1];
    none.fired_ns = round_ended_ns(none.round);
    assert_int_equal(trouble_phase_of(&f->h, &f->is, &none), TROUBLE_ENDING);
}

/* Between the record that a save was begun and the one that it is whole. */
static void test_a_save_is_a_phase_of_its_own(void **state) {
    struct fixture *f = *state;
    const struct record *begun = NULL, *whole = NULL;
    struct incident i = *f->is.v[0];
    history_each(r, &f->h) {
        begun = !begun && record_is(r, "checkpoint-begin") ? r : begun;
        whole = begun && !whole && record_is(r, "checkpoint-commit") ? r : whole;
    }
    assert_non_null(begun);
    assert_non_null(whole);
    i.targets_n = 0;
    i.fired_ns = begun->t_ns;
    assert_int_equal(trouble_phase_of(&f->h, &f->is, &i), TROUBLE_SAVING);
    i.fired_ns = whole->t_ns;
    assert_int_equal(trouble_phase_of(&f->h, &f->is, &i), TROUBLE_TRAINING);
}

static void test_the_target_is_told_by_rank(void **state) {
    struct fixture *f = *state;
    struct incident i = *f->is.v[0];
    struct incident_target two[2] = {i.targets[0], i.targets[0]};
    const struct worker *first = round_rank(i.round, 0), *other = round_rank(i.round, 1);
    i.targets = two;
    i.targets_n = 1;
    two[0] = (struct incident_target){.what = "worker", .node = first->node, .worker = first};
    assert_int_equal(trouble_target_of(&i), TROUBLE_RANK_0);
    two[0].worker = other;
    assert_int_equal(trouble_target_of(&i), TROUBLE_ANOTHER);
    two[0] = (struct incident_target){.what = "node", .node = first->node};
    assert_int_equal(trouble_target_of(&i), TROUBLE_RANK_0);
    two[0].node = "n99";
    assert_int_equal(trouble_target_of(&i), TROUBLE_ANOTHER);
    two[0].what = "store";
    assert_int_equal(trouble_target_of(&i), TROUBLE_STORE);
    two[0].what = "node";
    i.targets_n = 2;
    assert_int_equal(trouble_target_of(&i), TROUBLE_SEVERAL);
}

static void test_runs_are_counted(void **state) {
    struct fixture *f = *state;
    const struct recorded_run run = {.history = &f->h, .rounds = &f->rs};
    size_t kill = number_of(f->is.v[0]->fault), other = number_of("clock-jump");
    struct trouble t;
    trouble_init(&t);
    trouble_add(&t, &run);
    trouble_add(&t, &run);
    assert_int_equal(t.runs, 2);
    assert_int_equal(trouble_tried(&t, kill, TROUBLE_PHASES, TROUBLE_TARGETS), 2);
    assert_int_equal(trouble_tried(&t, kill, trouble_phase_of(&f->h, &f->is, f->is.v[0]),
                                   trouble_target_of(f->is.v[0])),
                     2);
    assert_int_equal(trouble_tried(&t, kill, TROUBLE_ENDING, TROUBLE_TARGETS), 0);
    assert_int_equal(trouble_tried(&t, other, TROUBLE_PHASES, TROUBLE_TARGETS), 0);
    assert_true(trouble_can_be_on(number_of("store-kill"), TROUBLE_STORE));
    assert_false(trouble_can_be_on(number_of("store-kill"), TROUBLE_RANK_0));
    assert_false(trouble_can_be_on(kill, TROUBLE_STORE));
    trouble_fini(&t);
}

/* ---- what is next ---- */

static bool not_in_training(const void *arg, const struct worth *w) {
    return w->phase != TROUBLE_TRAINING;
}

static void test_each_family_has_its_turn(void **state) {
    struct trouble t;
    struct worth v[6];
    const char *families[6];
    trouble_init(&t);
    assert_int_equal(worth_choose(&t, NULL, v, 6), 6);
    for (size_t i = 0; i < 6; i++) {
        families[i] = fault_family(faults[v[i].fault]);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(families[i], families[k]);
    }
    trouble_fini(&t);
}

static void test_what_was_tried_is_not_asked_for_again(void **state) {
    struct trouble t;
    struct worth before[1], v[6];
    trouble_init(&t);
    assert_int_equal(worth_choose(&t, NULL, before, 1), 1);
    t.v[before[0].fault][before[0].phase][before[0].target]++;
    size_t n = worth_choose(&t, NULL, v, 6);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(t.v[v[i].fault][v[i].phase][v[i].target], 0);
    /* Its family was tried now: five others come first. */
    for (size_t i = 0; i < 5; i++)
        assert_string_not_equal(fault_family(faults[v[i].fault]),
                                fault_family(faults[before[0].fault]));
    trouble_fini(&t);
}

static void test_what_may_not_be_is_left_out(void **state) {
    struct trouble t;
    struct worth v[6];
    const struct worth_filter filter = {.may = not_in_training};
    trouble_init(&t);
    size_t n = worth_choose(&t, &filter, v, 6);
    assert_int_equal(n, 6);
    for (size_t i = 0; i < n; i++)
        assert_int_not_equal(v[i].phase, TROUBLE_TRAINING);
    memset(t.v, 1, faults_n * sizeof(*t.v));
    assert_int_equal(worth_choose(&t, NULL, v, 6), 0);
    trouble_fini(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_phase_follows_from_what_the_workers_had_done,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_a_save_is_a_phase_of_its_own, begin, end),
        cmocka_unit_test_setup_teardown(test_the_target_is_told_by_rank, begin, end),
        cmocka_unit_test_setup_teardown(test_runs_are_counted, begin, end),
        cmocka_unit_test(test_each_family_has_its_turn),
        cmocka_unit_test(test_what_was_tried_is_not_asked_for_again),
        cmocka_unit_test(test_what_may_not_be_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
