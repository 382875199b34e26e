/* The gate: what it calls slower, what it leaves open, and how often it is wrong on machines that drift. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/trend/gate.h"

#include "base/rand.h"

#include <math.h>
#include <string.h>

enum { BASE = 100, MINE = 10, TRIALS = 300 };
static const struct gate_options options = {.runs = GATE_RUNS, .level = 0.01, .slower = 0.1};

/* A machine whose speed wanders: each run finds it a little off from where the last one did, and
 * now and then somewhere else. */
struct machine {
    struct rand r;
    double speed; /* logarithm */
    double step, jump;
    double follows; /* how much of it a time shows */
    double hidden;  /* the part of it that the calibration does not see */
    double noise;
};

static double normal(struct rand *r) {
    double u = 1 - rand_unit(r), w = rand_unit(r);
    return sqrt(-2 * log(u)) * cos(2 * M_PI * w);
}

static struct gate_run make_run(struct machine *m, int64_t at, bool mine, double longer) {
    m->speed += m->step * normal(&m->r);
    if (m->jump > 0 && rand_unit(&m->r) < 0.02)
        m->speed = m->jump * (rand_unit(&m->r) - 0.5);
    double seen = (1 - m->hidden) * m->speed + 0.03 * normal(&m->r);
    double ms = 200 * exp(m->follows * m->speed + m->noise * normal(&m->r));
    return (struct gate_run){.time_ns = at,
                             .ms = mine ? ms * longer : ms,
                             .calibration_ms = 2 * exp(seen),
                             .mine = mine};
}

static struct gate_finding ask(struct gate_run *v, size_t n) {
    struct gate_finding f;
    gate_compare(&f, v, n, &options);
    gate_settle(&f, 1, &options);
    return f;
}

/* Of so many trials, how many are called slower, and how many open. The others are cleared. */
static int count_slower(struct machine m, bool alternately, double longer, int *ret_open) {
    int slower = 0;
    *ret_open = 0;
    rand_init(&m.r, 7);
    for (int k = 0; k < TRIALS; k++) {
        struct gate_run v[BASE + MINE];
        size_t n = alternately ? 2 * MINE : BASE + MINE;
        for (size_t i = 0; i < n; i++)
            v[i] = make_run(&m, (int64_t)i, alternately ? i % 2 : i >= BASE, longer);
        struct gate_finding f = ask(v, n);
        slower += f.answer == GATE_SLOWER;
        *ret_open += f.answer != GATE_SLOWER && f.answer != GATE_SAME;
    }
    return slower;
}

/* ---- how often it is right ---- */

static void test_a_steady_machine_raises_no_alarm_and_20_percent_is_caught(void **state) {
    struct machine m = {.noise = 0.08};
    int open;
    assert_in_range(count_slower(m, false, 1, &open), 0, TRIALS / 100);
    assert_in_range(count_slower(m, false, 1.2, &open), TRIALS * 9 / 10, TRIALS);
}

static void test_a_machine_that_drifts_raises_none_and_most_are_caught(void **state) {
    struct machine m = {.step = 0.03, .jump = 1.5, .follows = 0.6, .noise = 0.06};
    int open;
    assert_in_range(count_slower(m, false, 1, &open), 0, TRIALS / 100);
    assert_in_range(count_slower(m, false, 1.2, &open), TRIALS / 2, TRIALS);
}

/* What the calibration does not see is between blocks of the base, too: much stays open then. */
static void test_a_drift_that_nobody_measures_raises_no_alarm(void **state) {
    struct machine m = {.step = 0.03, .jump = 1.5, .follows = 1, .hidden = 1, .noise = 0.06};
    int open;
    assert_in_range(count_slower(m, false, 1, &open), 0, TRIALS * 2 / 100);
    count_slower(m, false, 1.2, &open);
    assert_in_range(open, TRIALS / 4, TRIALS);
}

static void test_runs_made_alternately_need_no_calibration(void **state) {
    struct machine m = {.step = 0.03, .jump = 1.5, .follows = 1, .hidden = 1, .noise = 0.05};
    int open, caught;
    assert_in_range(count_slower(m, true, 1, &open), 0, TRIALS / 100);
    assert_in_range(open, 0, TRIALS / 10);
    caught = count_slower(m, true, 1.2, &open);
    assert_in_range(caught, TRIALS * 3 / 4, TRIALS);
    assert_in_range(TRIALS - caught - open, 0, TRIALS / 100);
}

/* What is slower by a fifth is caught or open: cleared in one of twenty cases at most, on any machine. */
static void test_what_must_be_caught_is_not_cleared(void **state) {
    const struct machine machines[] = {
        {.noise = 0.08},
        {.noise = 0.3},
        {.step = 0.03, .jump = 1.5, .follows = 0.6, .noise = 0.06},
        {.step = 0.03, .jump = 1.5, .follows = 1, .hidden = 1, .noise = 0.06},
        {.step = 0.05, .jump = 2, .follows = 0.4, .noise = 0.15},
    };
    for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++)
        for (int alternately = 0; alternately < 2; alternately++) {
            int open, caught = count_slower(machines[i], alternately, 1.2, &open);
            assert_in_range(TRIALS - caught - open, 0, TRIALS / 20);
        }
}

/* Noise that hides a fifth from ten runs: neither an alarm nor an all-clear, and the number of runs
 * that is asked for does tell. */
static void test_a_noisy_machine_cannot_tell_and_says_how_many_more_would(void **state) {
    struct machine m = {.noise = 0.25};
    struct gate_run v[BASE + MINE];
    struct gate_finding f;
    static struct gate_run many[4 * GATE_MORE_MAX];
    int open, told = 0;
    assert_in_range(count_slower(m, true, 1, &open), 0, TRIALS / 100);
    assert_in_range(open, TRIALS / 2, TRIALS);
    rand_init(&m.r, 3);
    for (size_t i = 0; i < 2 * MINE; i++)
        v[i] = make_run(&m, (int64_t)i, i % 2, 1);
    f = ask(v, 2 * MINE);
    assert_int_equal(f.answer, GATE_NOISE);
    assert_true(f.most >= 1.2 && f.more > 10 && f.more < 300);
    for (int k = 0; k < 100; k++) {
        size_t n = 2 * (MINE + f.more);
        for (size_t i = 0; i < n; i++)
            many[i] = make_run(&m, (int64_t)i, i % 2, k % 2 ? 1 : 1.2);
        told += ask(many, n).answer == (k % 2 ? GATE_SAME : GATE_SLOWER);
    }
    assert_in_range(told, 80, 100);
}

/* Made alternately, and each time that the change ran the machine was slower, as its calibration
 * says, by more than the job shows of it: it is the machine, as far as anybody knows. */
static void test_pairs_that_differ_by_their_machine_raise_no_alarm(void **state) {
    struct gate_run v[2 * MINE];
    for (int slowed = 0; slowed < 2; slowed++) {
        for (size_t i = 0; i < 2 * MINE; i++)
            v[i] = (struct gate_run){.time_ns = (int64_t)i,
                                     .ms = (100 + (double)(i * 7 % 5)) * (i % 2 ? 1.2 : 1),
                                     .calibration_ms = i % 2 && slowed ? 3.2 : 2,
                                     .mine = i % 2};
        struct gate_finding f = ask(v, 2 * MINE);
        assert_true(f.paired);
        assert_int_equal(f.answer, slowed ? GATE_NOISE : GATE_SLOWER);
    }
}

/* ---- what it says ---- */

static size_t plain(struct gate_run *v, size_t base, size_t mine, double longer, double slowed) {
    for (size_t i = 0; i < base + mine; i++)
        v[i] = (struct gate_run){.time_ns = (int64_t)i,
                                 .ms = (100 + (double)(i * 7 % 11)) * (i < base ? 1 : longer),
                                 .calibration_ms = i < base ? 2 : 2 * slowed,
                                 .mine = i >= base};
    return base + mine;
}

static void test_too_few_runs_are_open(void **state) {
    struct gate_run v[BASE + MINE];
    assert_int_equal(ask(v, plain(v, 40, 9, 2, 1)).answer, GATE_FEW);
    assert_int_equal(ask(v, plain(v, 9, 10, 2, 1)).answer, GATE_FEW);
    assert_int_equal(ask(v, 0).answer, GATE_FEW);
    assert_int_equal(ask(v, plain(v, 40, 10, 2, 1)).answer, GATE_SLOWER);
}

static void test_a_machine_that_was_never_as_slow_is_open(void **state) {
    struct gate_run v[BASE + MINE];
    struct gate_finding f = ask(v, plain(v, 40, 10, 1.6, 1.6));
    assert_int_equal(f.answer, GATE_MACHINE);
    assert_int_equal(f.alike, 0);
    assert_true(fabs(f.machine - 1.6) < 1e-6);
}

/* The calibration is within what counts as alike, and the base has never seen what the job makes of
 * such a machine: it may be the machine. */
static void test_a_little_slower_than_the_base_has_seen_is_open(void **state) {
    struct gate_run v[BASE + MINE];
    struct gate_finding f = ask(v, plain(v, 40, 10, 1.31, 1.25));
    assert_true(f.alike >= 10 && f.ratio > 1.2);
    assert_int_equal(f.answer, GATE_DRIFT);
    f = ask(v, plain(v, 40, 10, 1.8, 1.25)); /* more than any machine's */
    assert_int_equal(f.answer, GATE_SLOWER);
    f = ask(v, plain(v, 40, 10, 1.31, 0.8)); /* slower although the machine was faster */
    assert_int_equal(f.answer, GATE_SLOWER);
}

static void test_with_no_block_to_know_the_drift_from_it_is_open(void **state) {
    struct gate_run v[BASE + MINE];
    struct gate_finding f = ask(v, plain(v, 29, 10, 1.5, 1));
    assert_int_equal(f.answer, GATE_DRIFT);
    assert_int_equal(f.blocks, 2);
    assert_true(f.drift == 0);
    assert_true(fabs(f.ratio - 1.5) < 0.05);
    f = ask(v, plain(v, 30, 10, 1.5, 1));
    assert_int_equal(f.answer, GATE_SLOWER);
}

static void test_what_is_slower_by_less_is_let_pass(void **state) {
    struct gate_run v[BASE + MINE];
    struct gate_finding f = ask(v, plain(v, 90, 10, 1.08, 1));
    assert_true(f.p < 0.01);
    assert_int_equal(f.answer, GATE_SAME);
    assert_int_equal(ask(v, plain(v, 90, 10, 0.5, 1)).answer, GATE_SAME);
}

static void test_of_many_runs_the_nearest_in_time_are_taken(void **state) {
    static struct gate_run v[400];
    size_t n = plain(v, 390, 10, 1.5, 1);
    for (size_t i = 0; i < 200; i++)
        v[i].ms = 1000; /* long ago it was slower */
    struct gate_finding f = ask(v, n);
    assert_int_equal(f.base_n, GATE_BASE_MAX);
    assert_int_equal(f.answer, GATE_SLOWER);
}

/* Of ten findings each of which would do alone at 1 %, none does among the ten. */
static void test_many_findings_share_the_level(void **state) {
    struct gate_finding v[10];
    for (size_t i = 0; i < 10; i++)
        v[i] = (struct gate_finding){.n = 10, .p = 0.005, .ratio = 1.5, .most = 1.8, .drift = 1.1};
    gate_settle(v, 10, &options);
    assert_int_equal(v[0].answer, GATE_NOISE);
    v[3].p = 0.0005;
    gate_settle(v, 10, &options);
    assert_int_equal(v[3].answer, GATE_SLOWER);
    assert_int_equal(v[4].answer, GATE_NOISE);
    v[0].answer = GATE_SAME; /* as gate_compare leaves it */
    gate_settle(v, 1, &options);
    assert_int_equal(v[0].answer, GATE_SLOWER);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_steady_machine_raises_no_alarm_and_20_percent_is_caught),
        cmocka_unit_test(test_a_machine_that_drifts_raises_none_and_most_are_caught),
        cmocka_unit_test(test_a_drift_that_nobody_measures_raises_no_alarm),
        cmocka_unit_test(test_runs_made_alternately_need_no_calibration),
        cmocka_unit_test(test_what_must_be_caught_is_not_cleared),
        cmocka_unit_test(test_a_noisy_machine_cannot_tell_and_says_how_many_more_would),
        cmocka_unit_test(test_pairs_that_differ_by_their_machine_raise_no_alarm),
        cmocka_unit_test(test_too_few_runs_are_open),
        cmocka_unit_test(test_a_machine_that_was_never_as_slow_is_open),
        cmocka_unit_test(test_a_little_slower_than_the_base_has_seen_is_open),
        cmocka_unit_test(test_with_no_block_to_know_the_drift_from_it_is_open),
        cmocka_unit_test(test_what_is_slower_by_less_is_let_pass),
        cmocka_unit_test(test_of_many_runs_the_nearest_in_time_are_taken),
        cmocka_unit_test(test_many_findings_share_the_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
