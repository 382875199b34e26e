#include "harness/sim/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* RANKQUAKE_SEEDS=N runs N seeds; RANKQUAKE_SEED=S runs one, and prints what happened. */

#ifdef __SANITIZE_ADDRESS__
enum { SEEDS_DEFAULT = 2000 };
#else
enum { SEEDS_DEFAULT = 40000 };
#endif

static uint64_t number_of(const char *name, uint64_t absent) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : absent;
}

static void run(uint64_t seed, bool calm, struct sim_result *ret) {
    struct sim_config config;
    sim_config_default(&config);
    config.seed = seed;
    config.calm = calm;
    config.trace = getenv("RANKQUAKE_SEED") != NULL;
    sim_run(&config, ret);
    if (ret->violated)
        fail_msg("seed %llu at %.3f ms: %s (RANKQUAKE_SEED=%llu shows the run)",
                 (unsigned long long)seed, (double)ret->ended_ns / 1e6, ret->text,
                 (unsigned long long)seed);
}

static void test_a_job_in_calm_ends_well_and_soon(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct sim_result r;
        run(seed, true, &r);
        assert_int_equal(r.outcome, SIM_SUCCEEDED);
    }
}

/* A plan of more than one batch, and everybody in it. */
static void test_two_hundred_nodes_form_one_round(void **state) {
    (void)state;
    struct sim_config config;
    sim_config_default(&config);
    config.seed = 1;
    config.agents = 200;
    config.calm = true;
    struct sim_result r;
    sim_run(&config, &r);
    assert_string_equal(r.text, "");
    assert_int_equal(r.rounds, 1);
    assert_int_equal(r.outcome, SIM_SUCCEEDED);
}

static void test_a_hundred_nodes_in_trouble_break_nothing(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct sim_config config;
        sim_config_default(&config);
        config.seed = seed;
        config.agents = 100;
        struct sim_result r;
        sim_run(&config, &r);
        assert_string_equal(r.text, "");
    }
}

static void test_no_schedule_breaks_an_invariant(void **state) {
    (void)state;
    uint64_t one = number_of("RANKQUAKE_SEED", 0), n = number_of("RANKQUAKE_SEEDS", SEEDS_DEFAULT);
    int64_t steps = 0, rounds = 0, succeeded = 0;
    for (uint64_t seed = one ? one : 1; seed <= (one ? one : n); seed++) {
        struct sim_result r;
        run(seed, false, &r);
        steps += r.steps;
        rounds += r.rounds;
        succeeded += r.outcome == SIM_SUCCEEDED;
    }
    print_message("%llu seeds: %lld steps, %lld rounds, %lld jobs succeeded\n",
                  (unsigned long long)(one ? 1 : n), (long long)steps, (long long)rounds,
                  (long long)succeeded);
    if (!one) /* the schedules must be neither harmless nor hopeless */
        assert_true(rounds > (int64_t)n && succeeded > (int64_t)n / 3 && succeeded < (int64_t)n);
}

/* A round as often as a node can come and go, two a quarter of a second, would be 150 of them. */
static void test_a_node_that_is_lost_again_and_again_gets_rounds_further_apart(void **state) {
    (void)state;
    struct sim_entry crashes = {.at_ns = 500 * SIM_MS,
                                .fault = SIM_FAULT_NODE_CRASHES,
                                .node = 2,
                                .span_ns = 20000 * SIM_MS};
    struct sim_schedule s = {.seed = 1,
                             .agents = 3,
                             .min = 2,
                             .max = 3,
                             .slow_ns = 3 * SIM_MS,
                             .work_ns = 2500 * SIM_MS,
                             .trouble_ns = 20000 * SIM_MS,
                             .patient = true,
                             .plain = true,
                             .lifeline = true,
                             .entries = &crashes,
                             .n_entries = 1};
    struct sim_result r;
    sim_play(&s, false, &r);
    assert_string_equal(r.text, "");
    assert_int_equal(r.outcome, SIM_SUCCEEDED);
    assert_true(r.marks[SIM_MARK_ROUNDS_APART]);
    assert_in_range(r.rounds, 10, 30);
}

static void test_the_same_seed_is_the_same_run(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct sim_result a, b;
        run(seed, false, &a);
        run(seed, false, &b);
        assert_int_equal(a.steps, b.steps);
        assert_int_equal(a.ended_ns, b.ended_ns);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job_in_calm_ends_well_and_soon),
        cmocka_unit_test(test_two_hundred_nodes_form_one_round),
        cmocka_unit_test(test_a_hundred_nodes_in_trouble_break_nothing),
        cmocka_unit_test(test_no_schedule_breaks_an_invariant),
        cmocka_unit_test(test_a_node_that_is_lost_again_and_again_gets_rounds_further_apart),
        cmocka_unit_test(test_the_same_seed_is_the_same_run),
    };
    if (getenv("RANKQUAKE_SEED"))
        argv[1] = "test_no_schedule_breaks_an_invariant", argc = 2;
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
