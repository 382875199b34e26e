/* What failures cost: the formula against a life that is simulated, and the best interval against
 * all others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/trend/outage.h"

#include <math.h>

static const struct outage_job jobs[] = {
    {.mtbf = 28800, .save = 120, .restart = 600, .shape = 1},
    {.mtbf = 1080, .save = 30, .restart = 200, .shape = 1}, /* fails during every other start */
    {.mtbf = 28800, .save = 0.004, .restart = 0.061, .shape = 1},
    {.mtbf = 600, .save = 60, .restart = 900, .shape = 1}, /* hardly gets on */
};
static const double intervals[] = {60, 600, 2400};
enum { FAILURES = 100000 };

/* Within four standard errors: of twelve comparisons one goes wrong by chance once in 1,300 times,
 * and with one seed always or never. */
static void test_the_formula_is_what_a_simulated_life_comes_to(void **state) {
    for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++)
        for (size_t k = 0; k < 3; k++) {
            struct outage_cost told = outage_expect(&jobs[i], intervals[k]);
            struct outage_cost lived = outage_simulate(&jobs[i], intervals[k], FAILURES, 1 + i);
            assert_true(lived.error > 0 && lived.error < 0.01);
            if (fabs(told.work - lived.work) > 4 * lived.error)
                fail_msg("job %zu, interval %g: %g by formula, and %g +- %g", i, intervals[k],
                         told.work, lived.work, lived.error);
            assert_true(fabs(told.saving - lived.saving) < 0.01);
            assert_true(fabs(told.lost - lived.lost) < 0.01);
            assert_true(fabs(told.restarting - lived.restarting) < 0.01);
        }
}

static void test_the_parts_are_the_whole(void **state) {
    for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++) {
        struct outage_cost c = outage_expect(&jobs[i], 600),
                           l = outage_simulate(&jobs[i], 600, 1000, 2);
        assert_true(fabs(c.work + c.saving + c.lost + c.restarting - 1) < 1e-12);
        assert_true(fabs(l.work + l.saving + l.lost + l.restarting - 1) < 1e-12);
    }
}

static void test_no_other_interval_is_better(void **state) {
    for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++) {
        double best = outage_best_interval(&jobs[i]), most = outage_expect(&jobs[i], best).work;
        for (double by = 0.01; by < 100; by *= 1.1)
            assert_true(outage_expect(&jobs[i], best * by).work <= most + 1e-12);
    }
}

/* Daly's own example of how far Young's formula is off: near for short saves, not for long ones. */
static void test_youngs_formula_is_near_where_saves_are_short(void **state) {
    struct outage_job quick = {.mtbf = 86400, .save = 10, .shape = 1},
                      slow = {.mtbf = 600, .save = 300, .shape = 1};
    assert_true(fabs(outage_young_interval(&quick) / outage_best_interval(&quick) - 1) < 0.01);
    assert_true(outage_young_interval(&slow) / outage_best_interval(&slow) > 1.2);
}

/* A failure that comes at any moment of a short segment costs half of it. */
static void test_a_failure_costs_half_a_segment(void **state) {
    struct outage_job j = {.mtbf = 1e6, .save = 10, .shape = 1};
    assert_true(fabs(outage_lost_each(&j, 990) - 500) < 0.5);
}

/* The same number of failures, but in clusters: what one costs is shared, and more is left. */
static void test_failures_in_clusters_cost_less(void **state) {
    struct outage_job j = jobs[0];
    double even = outage_simulate(&j, 2400, FAILURES, 3).work;
    j.shape = 0.5;
    struct outage_cost clustered = outage_simulate(&j, 2400, FAILURES, 3);
    assert_true(clustered.work > even + 4 * clustered.error);
}

static void test_a_job_that_cannot_get_on_makes_nothing(void **state) {
    struct outage_job j = {.mtbf = 1, .save = 1000, .restart = 1000, .shape = 1};
    assert_true(outage_expect(&j, 1000).work < 1e-12);
    assert_true(outage_simulate(&j, 1000, 1000, 1).work < 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_formula_is_what_a_simulated_life_comes_to),
        cmocka_unit_test(test_the_parts_are_the_whole),
        cmocka_unit_test(test_no_other_interval_is_better),
        cmocka_unit_test(test_youngs_formula_is_near_where_saves_are_short),
        cmocka_unit_test(test_a_failure_costs_half_a_segment),
        cmocka_unit_test(test_failures_in_clusters_cost_less),
        cmocka_unit_test(test_a_job_that_cannot_get_on_makes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
