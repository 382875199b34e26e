/* Goodput: the steps that are in the model at the end, beside the control run's pace. */
#include "harness/history/goodput.h"
#include "tests/harness/judge/checks/planted.h"

static struct goodput measured(const struct edit *edits) {
    struct history h;
    struct rounds rs;
    struct goodput g;
    planted_load(&h, "worker-killed", edits);
    rounds_load(&rs, true, &h);
    goodput_measure(&g, &h, &rs);
    rounds_fini(&rs);
    history_fini(&h);
    return g;
}

/* Steps 1 to 5, and 5 to 8 again: seven after the first, in 110 ms, of 10 ms each. */
static void test_steps_that_were_made_again_count_once(void **state) {
    (void)state;
    struct goodput g = measured((const struct edit[]){{0}});
    assert_true(goodput_is_known(&g) && !g.printed);
    assert_int_equal(g.steps, 7);
    assert_true(g.span_s > 0.1099 && g.span_s < 0.1101);
    assert_int_equal((int)(g.percent * 10), 636);
    assert_int_equal(g.first_seq, 15);
    assert_int_equal(g.last_seq, 55);
}

static void test_the_control_runs_mean_counts_before_its_median(void **state) {
    (void)state;
    struct goodput g = measured((const struct edit[]){
        {"\"control\",", NULL, "\"step_ns\":", "\"pace_ns\":12000000,\"step_ns\":"}, {0}});
    assert_int_equal((int)(g.percent * 10), 763);
}

/* It resumed from step 4 and got to no step: what the round before had made is in no model. */
static void test_steps_that_nobody_resumed_from_do_not_count(void **state) {
    (void)state;
    struct goodput g = measured((const struct edit[]){
        {"\"step\",", "\"pid\":120", NULL, NULL}, {"\"step\",", "\"pid\":121", NULL, NULL}, {0}});
    assert_int_equal(g.steps, 3);
    assert_int_equal((int)(g.percent * 10), 517);
}

static void test_of_a_job_that_failed_the_time_counts_until_it_was_over(void **state) {
    (void)state;
    struct goodput g = measured((const struct edit[]){
        {"\"worker-exit\",", "\"pid\":121", "\"code\":0", "\"code\":1"}, {0}});
    assert_int_equal(g.steps, 7);
    assert_int_equal((int)(g.percent * 10), 538); /* 70 of 130 ms */
}

static void test_without_steps_or_a_control_run_nothing_is_said(void **state) {
    (void)state;
    struct goodput g = measured((const struct edit[]){{"\"step\",", NULL, NULL, NULL}, {0}});
    assert_string_equal(g.unknown, "the job told no two steps");
    g = measured((const struct edit[]){{"\"control\",", NULL, NULL, NULL}, {0}});
    assert_string_equal(g.unknown, "the control run does not tell how long a step takes");
    assert_false(goodput_is_known(&g));
}

static void test_the_pace_is_the_mean_from_the_first_step_to_the_last(void **state) {
    (void)state;
    static const struct edit none[1];
    struct history h;
    struct rounds rs;
    planted_load(&h, "worker-killed", none);
    rounds_load(&rs, true, &h);
    assert_int_equal(goodput_pace_ns(&rs) / 1000, 15714); /* 110 ms in seven steps */
    rounds_fini(&rs);
    history_fini(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_that_were_made_again_count_once),
        cmocka_unit_test(test_the_control_runs_mean_counts_before_its_median),
        cmocka_unit_test(test_steps_that_nobody_resumed_from_do_not_count),
        cmocka_unit_test(test_of_a_job_that_failed_the_time_counts_until_it_was_over),
        cmocka_unit_test(test_without_steps_or_a_control_run_nothing_is_said),
        cmocka_unit_test(test_the_pace_is_the_mean_from_the_first_step_to_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
