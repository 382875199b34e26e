#include "harness/verbs/sim/marks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* Each mark in so many of the seeds. */
static struct seeds_tally tally_of(uint64_t seeds, uint64_t reached) {
    struct seeds_tally t = {.seeds = seeds};
    for (int i = 0; i < SIM_MARKS_N; i++)
        t.marks[i] = reached;
    return t;
}

/* What is said, and how many are held against the seeds. */
static int told(const struct sim_config *given, const struct seeds_tally *t, struct buf *out) {
    struct sim_config config;
    sim_config_default(&config);
    return marks_tell(given ? given : &config, t, out);
}

static void test_a_mark_that_no_seed_of_a_hundred_thousand_reaches_fails(void **state) {
    (void)state;
    struct buf out = {0};
    struct seeds_tally t = tally_of(MARKS_SEEDS, 500);
    assert_int_equal(told(NULL, &t, &out), 0);
    assert_null(strstr(buf_str(&out), "no schedule reaches it"));
    t.marks[SIM_MARK_STORE_OUTLIVED] = 0;
    assert_int_equal(told(NULL, &t, &out), 1);
    assert_non_null(strstr(buf_str(&out), "1 of them in none of 100000 seeds"));
    t.marks[SIM_MARKS_N - 1] = t.marks[0] = 0;
    assert_int_equal(told(NULL, &t, &out), 3);
    buf_fini(&out);
}

static void test_fewer_seeds_or_fewer_kinds_of_faults_prove_nothing(void **state) {
    (void)state;
    struct buf out = {0};
    struct sim_config kinds, frozen, few;
    struct seeds_tally t = tally_of(MARKS_SEEDS - 1, 0);
    assert_int_equal(told(NULL, &t, &out), 0);
    t = tally_of(MARKS_SEEDS, 0);
    sim_config_default(&kinds);
    kinds.weights[SIM_FAULT_STORE_WIPED] = 0;
    assert_int_equal(told(&kinds, &t, &out), 0);
    sim_config_default(&frozen);
    frozen.frozen = true;
    assert_int_equal(told(&frozen, &t, &out), 0);
    sim_config_default(&few);
    few.agents = 2;
    assert_int_equal(told(&few, &t, &out), 0);
    few.agents = SIM_AGENTS_USUAL;
    assert_int_equal(told(&few, &t, &out), SIM_MARKS_N);
    buf_fini(&out);
}

static void test_the_share_of_each_is_told_and_which_is_seldom(void **state) {
    (void)state;
    struct buf out = {0};
    struct seeds_tally t = tally_of(40000, 40);
    assert_int_equal(told(NULL, &t, &out), 0);
    assert_non_null(strstr(buf_str(&out), "        40    0.10 %  a watch is lost"));
    assert_null(strstr(buf_str(&out), "below 1 of 1,000"));
    t.marks[SIM_MARK_WATCH_LOST] = 39;
    assert_int_equal(told(NULL, &t, &out), 0);
    assert_non_null(strstr(buf_str(&out), "a watch is lost with changes under way (below 1 of"));
    buf_fini(&out);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_mark_that_no_seed_of_a_hundred_thousand_reaches_fails),
        cmocka_unit_test(test_fewer_seeds_or_fewer_kinds_of_faults_prove_nothing),
        cmocka_unit_test(test_the_share_of_each_is_told_and_which_is_seldom),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
