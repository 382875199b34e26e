#include "harness/sim/shrink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* What stands in for a bug: something about the schedule that is an evil or is not. */

static int count(const struct sim_schedule *s, enum sim_fault_kind fault) {
    int n = 0;
    for (int i = 0; i < s->n_entries; i++)
        n += s->entries[i].fault == (int)fault;
    return n;
}

static void verdict(struct sim_result *r, const char *text) {
    *r = (struct sim_result){.violated = *text};
    snprintf(r->text, sizeof(r->text), "%s", text);
}

/* A cut of at least 100 ms before a failed worker, with three agents. */
static void play_pair(const struct sim_schedule *s, bool trace, struct sim_result *r) {
    (void)trace;
    bool cut = false, wrong = false;
    for (int i = 0; i < s->n_entries; i++) {
        const struct sim_entry *e = &s->entries[i];
        cut |= e->fault == SIM_FAULT_NODE_CUT && e->span_ns >= 100 * SIM_MS;
        wrong |= cut && e->fault == SIM_FAULT_WORKER_FAIL;
    }
    verdict(r, wrong && s->agents >= 3 ? "I9: planted" : s->agents == 2 ? "I8: another" : "");
}

static void play_good(const struct sim_schedule *s, bool trace, struct sim_result *r) {
    (void)s;
    (void)trace;
    verdict(r, "");
}

/* The first schedule, of many faults, in which it goes wrong. */
static void draw_wrong(void (*play)(const struct sim_schedule *, bool, struct sim_result *),
                       struct sim_schedule *ret) {
    struct sim_config c;
    struct sim_result r;
    sim_config_default(&c);
    c.agents = 5;
    c.faults_mean = 20;
    for (c.seed = 1; c.seed < 100; c.seed++) {
        sim_draw(&c, ret);
        play(ret, false, &r);
        if (r.violated && ret->n_entries > 10)
            return;
        sim_schedule_fini(ret);
    }
    fail_msg("no schedule of a hundred is wrong");
}

static const struct shrink_spec usual = {.runs = 5000, .time_ns = INT64_C(60000000000)};

static void test_two_faults_of_many_and_three_agents_are_left(void **state) {
    (void)state;
    struct shrink_spec spec = usual;
    struct sim_schedule s;
    struct shrunk small;
    spec.play = play_pair;
    draw_wrong(play_pair, &s);
    assert_true(shrink(&s, &spec, &small));
    assert_string_equal(small.result.text, "I9: planted");
    assert_int_equal(small.schedule.n_entries, 2);
    assert_int_equal(small.schedule.agents, 3);
    assert_int_equal(count(&small.schedule, SIM_FAULT_NODE_CUT), 1);
    assert_int_equal(small.schedule.entries[1].fault, SIM_FAULT_WORKER_FAIL);
    assert_int_equal(small.schedule.loss + small.schedule.late + small.schedule.fragile, 0);
    assert_true(small.schedule.even && !small.cut_short);
    sim_schedule_fini(&small.schedule);
    sim_schedule_fini(&s);
}

static void test_spans_become_short_and_times_round(void **state) {
    (void)state;
    struct shrink_spec spec = usual;
    struct sim_schedule s;
    struct shrunk small;
    spec.play = play_pair;
    draw_wrong(play_pair, &s);
    assert_true(shrink(&s, &spec, &small));
    assert_true(small.schedule.entries[0].span_ns >= 100 * SIM_MS);
    assert_true(small.schedule.entries[0].span_ns < 200 * SIM_MS);
    assert_int_equal(small.schedule.entries[0].span_ns % (10 * SIM_MS), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(small.schedule.entries[i].at_ns % (10 * SIM_MS), 0);
    sim_schedule_fini(&small.schedule);
    sim_schedule_fini(&s);
}

static void test_the_same_schedule_shrinks_to_the_same(void **state) {
    (void)state;
    struct shrink_spec spec = usual;
    struct sim_schedule s;
    struct shrunk a, b;
    spec.play = play_pair;
    draw_wrong(play_pair, &s);
    assert_true(shrink(&s, &spec, &a) && shrink(&s, &spec, &b));
    assert_int_equal(a.runs, b.runs);
    assert_int_equal(a.schedule.seed, b.schedule.seed);
    assert_memory_equal(a.schedule.entries, b.schedule.entries, 2 * sizeof(*a.schedule.entries));
    sim_schedule_fini(&a.schedule);
    sim_schedule_fini(&b.schedule);
    sim_schedule_fini(&s);
}

static void test_a_limit_of_runs_is_kept_and_said(void **state) {
    (void)state;
    struct shrink_spec spec = {.runs = 5, .time_ns = usual.time_ns, .play = play_pair};
    struct sim_schedule s;
    struct shrunk small;
    draw_wrong(play_pair, &s);
    assert_true(shrink(&s, &spec, &small));
    assert_int_equal(small.runs, 5);
    assert_true(small.cut_short && small.result.violated);
    sim_schedule_fini(&small.schedule);
    sim_schedule_fini(&s);
}

static volatile sig_atomic_t stopped;

static void play_pair_until_ten(const struct sim_schedule *s, bool trace, struct sim_result *r) {
    static int runs;
    stopped = ++runs >= 10;
    play_pair(s, trace, r);
}

static void test_it_ends_when_it_is_told_to_with_what_it_has(void **state) {
    (void)state;
    struct shrink_spec spec = usual;
    struct sim_schedule s;
    struct shrunk small;
    spec.play = play_pair_until_ten;
    spec.stop = &stopped;
    draw_wrong(play_pair, &s);
    assert_true(shrink(&s, &spec, &small));
    assert_int_equal(small.runs, 9); /* the first was to see that it is wrong */
    assert_true(small.cut_short && small.result.violated);
    sim_schedule_fini(&small.schedule);
    sim_schedule_fini(&s);
}

static void test_what_breaks_nothing_is_not_shrunk(void **state) {
    (void)state;
    struct shrink_spec spec = usual;
    struct sim_schedule s;
    struct shrunk small;
    spec.play = play_good;
    draw_wrong(play_pair, &s);
    assert_false(shrink(&s, &spec, &small));
    sim_schedule_fini(&s);
}

/* A fault taken out changes nothing that was before it. */
static void test_a_run_without_its_last_fault_begins_as_it_did(void **state) {
    (void)state;
    struct sim_config c;
    struct sim_result with, without;
    sim_config_default(&c);
    c.agents = 3;
    c.seed = 11;
    struct sim_schedule s;
    sim_draw(&c, &s);
    assert_true(s.n_entries > 1);
    sim_play(&s, false, &with);
    /* Struck long after the end: as if it were not there. */
    s.entries[s.n_entries - 1].at_ns = s.trouble_ns - 1;
    s.entries[s.n_entries - 1].after = SIM_AFTER_MAX;
    sim_play(&s, false, &with);
    s.n_entries--;
    sim_play(&s, false, &without);
    assert_int_equal(with.steps, without.steps);
    assert_int_equal(with.ended_ns, without.ended_ns);
    assert_int_equal(with.transactions, without.transactions);
    sim_schedule_fini(&s);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_faults_of_many_and_three_agents_are_left),
        cmocka_unit_test(test_spans_become_short_and_times_round),
        cmocka_unit_test(test_the_same_schedule_shrinks_to_the_same),
        cmocka_unit_test(test_a_limit_of_runs_is_kept_and_said),
        cmocka_unit_test(test_it_ends_when_it_is_told_to_with_what_it_has),
        cmocka_unit_test(test_what_breaks_nothing_is_not_shrunk),
        cmocka_unit_test(test_a_run_without_its_last_fault_begins_as_it_did),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
