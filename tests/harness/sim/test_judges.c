#include "tests/harness/sim/judges.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

struct tally {
    uint64_t seed;
    int n, open;
};

static void seen(void *arg, const struct sim_result *sim, const struct verdict *live) {
    struct tally *t = arg;
    const struct finding *f = judges_broken(live);
    if (sim->violated || f)
        fail_msg("seed %llu: %s; %s: %s", (unsigned long long)t->seed,
                 sim->violated ? sim->text : "all is well", f ? f->check : "nothing",
                 f ? f->seen : "");
    t->n++;
    t->open += live->exit_code == 2;
}

static struct tally judge(struct sim_config *c, uint64_t first, uint64_t last) {
    struct tally t = {0};
    for (c->seed = first; c->seed <= last; c->seed++) {
        t.seed = c->seed;
        assert_true(judges_judge(c, seen, &t));
    }
    return t;
}

/* Soak has ten thousand of each (tests/soak/judges.sh). */
static void test_both_judges_find_that_all_is_well(void **state) {
    (void)state;
    struct sim_config c;
    sim_config_default(&c);
    c.plain = true; /* of such jobs the live judge knows nothing */
    c.weights[SIM_FAULT_STORE_SET_BACK] = c.weights[SIM_FAULT_STORE_WIPED] = 0;
    c.weights[SIM_FAULT_AGENT_OTHER] = 0;
    assert_int_equal(judge(&c, 1, 400).n, 400);
    c.swarm = true;
    judge(&c, 401, 600);
}

static void test_they_do_with_many_faults_and_rounds(void **state) {
    (void)state;
    struct sim_config c;
    sim_config_default(&c);
    c.plain = true; /* of such jobs the live judge knows nothing */
    c.weights[SIM_FAULT_STORE_SET_BACK] = c.weights[SIM_FAULT_STORE_WIPED] = 0;
    c.weights[SIM_FAULT_AGENT_OTHER] = 0;
    c.agents = 5;
    c.faults_mean = 12;
    c.trouble_ns = INT64_C(20000000000);
    assert_int_equal(judge(&c, 1, 60).n, 60);
}

static void see_pass(void *arg, const struct sim_result *sim, const struct verdict *live) {
    (void)arg;
    assert_false(sim->violated);
    assert_int_equal(live->exit_code, 0);
    assert_int_equal(verdict_find(live, "one_round")->status, FINDING_PASS);
    assert_int_equal(verdict_find(live, "model")->status, FINDING_SKIP);
}

static void test_a_run_without_faults_passes_as_a_live_one_would(void **state) {
    (void)state;
    struct sim_config c;
    sim_config_default(&c);
    c.plain = true; /* of such jobs the live judge knows nothing */
    c.weights[SIM_FAULT_STORE_SET_BACK] = c.weights[SIM_FAULT_STORE_WIPED] = 0;
    c.weights[SIM_FAULT_AGENT_OTHER] = 0;
    c.calm = true;
    for (c.seed = 1; c.seed <= 20; c.seed++)
        assert_true(judges_judge(&c, see_pass, NULL));
}

static void see_same(void *arg, const struct sim_result *sim, const struct verdict *live) {
    struct sim_result *other = arg;
    (void)live;
    other->recorded = sim->recorded; /* which only this one has */
    assert_memory_equal(sim, other, sizeof(*sim));
}

static void test_a_run_that_is_recorded_is_the_same_run(void **state) {
    (void)state;
    struct sim_config c;
    sim_config_default(&c);
    c.plain = true; /* of such jobs the live judge knows nothing */
    c.weights[SIM_FAULT_STORE_SET_BACK] = c.weights[SIM_FAULT_STORE_WIPED] = 0;
    c.weights[SIM_FAULT_AGENT_OTHER] = 0;
    for (c.seed = 1; c.seed <= 100; c.seed++) {
        struct sim_result plain;
        c.weights[SIM_FAULT_AGENT_OTHER] = 0;
        sim_run(&c, &plain);
        assert_true(judges_judge(&c, see_same, &plain));
    }
}

static void test_what_the_machines_show_must_be_seen_from_outside(void **state) {
    (void)state;
    assert_true(judges_must_see("I1 one_round: n1 starts round 2 while n0 has workers of round 1"));
    assert_true(judges_must_see("I2 ranks: rank 1 of round 2 is given twice"));
    assert_false(judges_must_see("I1 one_round: round 2 runs without the ack of a"));
    assert_false(judges_must_see("CONTRACT contract: gone/a is written while n0 has workers"));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_judges_find_that_all_is_well),
        cmocka_unit_test(test_they_do_with_many_faults_and_rounds),
        cmocka_unit_test(test_a_run_without_faults_passes_as_a_live_one_would),
        cmocka_unit_test(test_a_run_that_is_recorded_is_the_same_run),
        cmocka_unit_test(test_what_the_machines_show_must_be_seen_from_outside),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
