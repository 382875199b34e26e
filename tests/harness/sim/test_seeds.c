#include "agent/core/kv_state.h"
#include "harness/sim/simulation.h"
#include "harness/sim/schedule.h"
#include "harness/sim/seeds.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct seeds_tally tally_of(uint64_t first, uint64_t last, int jobs, bool swarm) {
    struct seeds_spec s = {.first = first, .last = last, .jobs = jobs};
    struct seeds_tally t;
    struct err err = {0};
    sim_config_default(&s.config);
    s.config.swarm = swarm;
    assert_int_equal(seeds_run(&s, &t, &err), 0);
    return t;
}

static void test_what_comes_of_seeds_does_not_depend_on_the_number_of_processes(void **state) {
    (void)state;
    struct seeds_tally one = tally_of(1, 200, 1, false), three = tally_of(1, 200, 3, false);
    assert_int_equal(one.seeds, 200);
    assert_memory_equal(&one, &three, sizeof(one));
}

static void test_more_processes_than_seeds_do_each_seed_once(void **state) {
    (void)state;
    assert_int_equal(tally_of(7, 8, 8, false).seeds, 2);
}

static void test_swarm_is_another_schedule(void **state) {
    (void)state;
    struct seeds_tally all = tally_of(1, 200, 2, false), swarm = tally_of(1, 200, 2, true);
    assert_int_equal(swarm.violated, 0);
    assert_int_not_equal(all.steps, swarm.steps);
}

/* An invariant that no seed puts at risk holds nothing; nor does a kind of seed that is never drawn. */
static void test_every_invariant_is_at_risk_and_none_is_broken(void **state) {
    (void)state;
    struct seeds_spec s = {.first = 1, .last = 1500, .jobs = 2};
    static struct seeds_tally t;
    struct err err = {0};
    sim_config_default(&s.config);
    s.config.agents = SIM_AGENTS_USUAL;
    s.config.trouble_ns = INT64_C(60000000000);
    s.config.faults_mean = 6;
    s.config.swarm = s.config.varies = true;
    assert_int_equal(seeds_run(&s, &t, &err), 0);
    assert_string_equal(t.failed[0].text, "");
    for (int i = 0; i < INVARIANTS_N; i++)
        if (!t.risked[i])
            fail_msg("%s: none of %" PRIu64 " seeds could have broken it", invariants[i]->name,
                     t.seeds);
}

static void test_some_seeds_are_large_long_or_of_two_attempts(void **state) {
    (void)state;
    int large = 0, hours = 0, again = 0, small = 0, brief = 0, alone = 0;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        struct sim_config c;
        struct sim_schedule s;
        sim_config_default(&c);
        c.seed = seed;
        c.agents = SIM_AGENTS_USUAL;
        c.trouble_ns = INT64_C(60000000000);
        c.varies = true;
        sim_draw(&c, &s);
        int others = 0;
        for (int i = 0; i < s.n_entries; i++)
            others += s.entries[i].fault == SIM_FAULT_AGENT_OTHER;
        large += s.agents >= 70;
        small += s.agents <= SIM_AGENTS_USUAL;
        brief += s.trouble_ns <= INT64_C(4000000000) && !s.usual;
        alone += s.agents == 1;
        hours += s.trouble_ns > INT64_C(3600000000000);
        again += others >= s.agents && !s.patient && s.agents == SIM_AGENTS_USUAL;
        sim_schedule_fini(&s);
    }
    assert_in_range(large, 30, 70);
    assert_true(hours > 0 && again > 30 && large + small == 2000);
    assert_true(brief > 500 && alone > 100);
}

static void put(struct kv *kv, const char *key, const char *value) {
    struct arena a = {0};
    struct kv_txn_result r;
    struct kv_op op = {.kind = KV_PUT, .key = kv_string(key), .value = kv_string(value)};
    assert_int_equal(kv_txn(kv, &(struct kv_txn){.success = &op, .n_success = 1}, &a, &r, NULL), 0);
    arena_fini(&a);
}

static void test_a_store_that_keeps_what_nobody_needs_is_seen(void **state) {
    (void)state;
    struct kv *kv = kv_new(1, 0);
    size_t held, needed;
    put(kv, "a", "first");
    put(kv, "a", "second");
    assert_true(sim_memory_fits(kv, &held, &needed));
    assert_true(held > 0);
    kv->bytes += 1; /* of a record that was not given back */
    assert_false(sim_memory_fits(kv, &held, &needed));
    assert_int_equal(held, needed + 1);
    kv->bytes -= 1;
    kv_free(kv);
}

static bool stop(void *arg, const struct seeds_tally *t) {
    (void)t;
    (*(int *)arg)++;
    return false;
}

static void test_seeds_that_are_stopped_say_so_and_leave_no_process(void **state) {
    (void)state;
    int told = 0;
    struct seeds_spec s = {.first = 1, .last = UINT64_C(1) << 40, .jobs = 2, .seen = stop};
    struct seeds_tally t;
    struct err err = {0};
    s.arg = &told;
    sim_config_default(&s.config);
    assert_int_equal(seeds_run(&s, &t, &err), -ECANCELED);
    assert_int_equal(told, 1);
}

/* Schedules of a minute: what is to be met there must be met, and none may break an invariant. */
static void test_a_minute_of_faults_reaches_the_marks_and_breaks_nothing(void **state) {
    (void)state;
    struct seeds_spec s = {.first = 1, .last = 400, .jobs = 2};
    struct seeds_tally t;
    struct err err = {0};
    sim_config_default(&s.config);
    s.config.agents = 5;
    s.config.trouble_ns = INT64_C(60000000000);
    s.config.faults_mean = 10;
    assert_int_equal(seeds_run(&s, &t, &err), 0);
    assert_string_equal(t.failed[0].text, "");
    assert_true(t.rounds > 3 * t.seeds && t.faults > 3 * t.seeds);
    assert_true(t.marks[SIM_MARK_SPARE_PROMOTED] && t.marks[SIM_MARK_FENCED]);
    assert_true(t.marks[SIM_MARK_ANSWER_LOST] && t.marks[SIM_MARK_TWO_LEADERS]);
}

static void test_one_kind_of_fault_alone_is_all_that_strikes(void **state) {
    (void)state;
    struct sim_config c;
    struct sim_result r;
    sim_config_default(&c);
    memset(c.weights, 0, sizeof(c.weights));
    c.weights[sim_fault_find("store-restart")] = 1;
    for (c.seed = 1; c.seed <= 100; c.seed++) {
        sim_run(&c, &r);
        assert_string_equal(r.text, "");
        assert_false(r.marks[SIM_MARK_COORDINATOR_GONE] || r.marks[SIM_MARK_LEAVER_IN_FORM]);
    }
}

/* What the core does not bear yet has the weight 0. */
static void test_every_kind_of_fault_strikes_and_breaks_nothing(void **state) {
    (void)state;
    for (int i = 0; i < SIM_FAULTS_N; i++) {
        struct sim_config c;
        struct sim_result r;
        int64_t struck = 0;
        sim_config_default(&c);
        if (!sim_faults()[i].weight)
            continue;
        memset(c.weights, 0, sizeof(c.weights));
        c.weights[i] = 1;
        for (c.seed = 1; c.seed <= 60; c.seed++) {
            sim_run(&c, &r);
            if (r.violated)
                fail_msg("%s, seed %d: %s", sim_faults()[i].name, (int)c.seed, r.text);
            struck += r.faults;
        }
        if (!struck)
            fail_msg("%s never strikes", sim_faults()[i].name);
    }
}

static void test_fault_names_are_found_and_in_order(void **state) {
    (void)state;
    for (int i = 0; i < SIM_FAULTS_N; i++) {
        assert_int_equal(sim_fault_find(sim_faults()[i].name), i);
        assert_true(!i || strcmp(sim_faults()[i - 1].name, sim_faults()[i].name) < 0);
    }
    assert_int_equal(sim_fault_find("meteor"), -1);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_comes_of_seeds_does_not_depend_on_the_number_of_processes),
        cmocka_unit_test(test_more_processes_than_seeds_do_each_seed_once),
        cmocka_unit_test(test_swarm_is_another_schedule),
        cmocka_unit_test(test_every_invariant_is_at_risk_and_none_is_broken),
        cmocka_unit_test(test_a_store_that_keeps_what_nobody_needs_is_seen),
        cmocka_unit_test(test_some_seeds_are_large_long_or_of_two_attempts),
        cmocka_unit_test(test_seeds_that_are_stopped_say_so_and_leave_no_process),
        cmocka_unit_test(test_a_minute_of_faults_reaches_the_marks_and_breaks_nothing),
        cmocka_unit_test(test_one_kind_of_fault_alone_is_all_that_strikes),
        cmocka_unit_test(test_every_kind_of_fault_strikes_and_breaks_nothing),
        cmocka_unit_test(test_fault_names_are_found_and_in_order),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
