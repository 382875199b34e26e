#include "harness/sim/live.h"

#include "base/sys/file.h"
#include "harness/plan/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { AGENTS = 3, LINES = 8 };

static struct sim_entry entries[LINES];

/* Two of three nodes are needed; the job stood after 200 ms. */
static struct script script_of(const struct sim_entry *v, int n) {
    struct script s = {.name = "any"};
    s.schedule = (struct sim_schedule){.seed = 1,
                                       .agents = AGENTS,
                                       .min = 2,
                                       .max = AGENTS,
                                       .max_restarts = 1,
                                       .slow_ns = 3 * SIM_MS,
                                       .work_ns = 2500 * SIM_MS,
                                       .trouble_ns = 4000 * SIM_MS,
                                       .plain = true,
                                       .even = true,
                                       .lifeline = true,
                                       .entries = entries,
                                       .n_entries = n};
    memcpy(entries, v, (size_t)n * sizeof(*v));
    return s;
}

static const struct sim_result stood = {.steady_ns = 200 * SIM_MS};

static const char *written(const struct script *s, int *ret_played) {
    static struct buf text;
    buf_fini(&text);
    int played = live_write(s, &stood, &text);
    if (ret_played)
        *ret_played = played;
    return buf_str(&text);
}

/* Fails with what the harness says against it. */
static void assert_accepted(const char *text) {
    char path[256];
    struct err err = {0};
    struct diagnostics d = {0};
    const char *dir = getenv("TMPDIR");
    snprintf(path, sizeof(path), "%s/live.yaml", dir ? dir : "/tmp");
    assert_int_equal(file_write(path, text, strlen(text), &err), 0);
    struct scenario *s = scenario_load(path, NULL, &d);
    struct plan *p = s ? plan_make(s, 1, &d) : NULL;
    if (d.errors || !p)
        fail_msg("%s\n%s", buf_str(&d.out), text);
    plan_free(p);
    scenario_free(s);
    diagnostics_fini(&d);
}

static void assert_says(const char *text, const char *what) {
    if (!strstr(text, what))
        fail_msg("it does not say \"%s\" but\n%s", what, text);
}

static struct sim_entry entry_of(int fault, int64_t at_ms) {
    const struct sim_fault *f = &sim_faults()[fault];
    return (struct sim_entry){.at_ns = at_ms * SIM_MS,
                              .fault = fault,
                              .node = f->on_node ? 1 : SIM_NODE_NONE,
                              .span_ns = f->span_most_ns ? 500 * SIM_MS : 0};
}

static void test_every_kind_is_a_line_that_is_accepted_or_a_comment_with_a_reason(void **state) {
    (void)state;
    int words = 0;
    for (int fault = 0; fault < SIM_FAULTS_N; fault++) {
        struct sim_entry v[] = {entry_of(SIM_FAULT_AGENT_LEAVE, 300), entry_of(fault, 1000)};
        v[0].node = 0; /* somebody is away, for those that come */
        if (fault == SIM_FAULT_AGENT_START)
            v[1].node = 0;
        struct script s = script_of(v, 2);
        s.schedule.min = 1;
        int played;
        const char *text = written(&s, &played), *lacks = live_lacks(fault);
        char comment[200];
        snprintf(comment, sizeof(comment), "# not played: %s", sim_faults()[fault].name);
        if ((played == 2) != !lacks || (strstr(text, comment) != NULL) != (lacks != NULL))
            fail_msg("%s, %d played:\n%s", sim_faults()[fault].name, played, text);
        if (lacks)
            assert_says(text, lacks);
        assert_accepted(text);
        words += !lacks;
    }
    assert_int_equal(words, 18);
}

static void test_what_is_drawn_is_accepted(void **state) {
    (void)state;
    struct sim_config c;
    sim_config_default(&c);
    for (c.seed = 1; c.seed <= 60; c.seed++) {
        struct script s = {.name = "drawn"};
        int played;
        sim_draw(&c, &s.schedule);
        const char *text = written(&s, &played);
        assert_in_range(played, 0, s.schedule.n_entries);
        assert_accepted(text);
        sim_schedule_fini(&s.schedule);
    }
}

static void test_a_line_that_would_strike_nobody_is_not_played(void **state) {
    (void)state;
    struct sim_entry v[] = {entry_of(SIM_FAULT_NODE_KILL, 500), entry_of(SIM_FAULT_NODE_CUT, 800),
                            entry_of(SIM_FAULT_WORKER_FAIL, 900)};
    struct script s = script_of(v, 3);
    int played;
    const char *text = written(&s, &played);
    assert_int_equal(played, 1);
    assert_says(text, "# not played: node-cut on n1: nobody is there");
    assert_says(text, "# not played: worker-fail on n1: nobody is there");
}

static void test_who_comes_back_is_a_line_and_can_be_struck_again(void **state) {
    (void)state;
    struct sim_entry v[] = {entry_of(SIM_FAULT_NODE_KILL, 500),
                            entry_of(SIM_FAULT_WORKER_FAIL, 2200)};
    v[0].back_ns = 1000 * SIM_MS;
    struct script s = script_of(v, 2);
    int played;
    const char *text = written(&s, &played);
    assert_int_equal(played, 2);
    assert_says(text, "{when: {time: 300ms}, fault: node-kill, on: n1}");
    assert_says(text, "{when: {time: 1.300s}, fault: node-start, on: n1}");
    assert_says(text, "{when: {time: 2.000s}, fault: worker-exit, with: {code: 1}, on: n1/0}");
}

/* Its machine is on: it is switched off before it is switched on. */
static void test_who_has_left_is_off_before_it_comes_back(void **state) {
    (void)state;
    struct sim_entry v[] = {entry_of(SIM_FAULT_AGENT_LEAVE, 500)};
    v[0].back_ns = 2000 * SIM_MS;
    struct script s = script_of(v, 1);
    const char *text = written(&s, NULL);
    assert_says(text, "{when: {time: 2.000s}, fault: node-kill, on: n1}");
    assert_says(text, "{when: {time: 2.300s}, fault: node-start, on: n1}");
}

static void test_nodes_that_come_later_are_the_last_and_the_job_can_begin(void **state) {
    (void)state;
    struct sim_entry v[] = {entry_of(SIM_FAULT_AGENT_START, 500),
                            entry_of(SIM_FAULT_AGENT_START, 900)};
    v[0].node = 1;
    v[1].node = 0;
    struct script s = script_of(v, 2);
    int played;
    const char *text = written(&s, &played);
    assert_says(text, "cluster: {nodes: 3, start: 2}");
    assert_says(text, "# not played: agent-start on n0: it is there from the beginning");
    assert_says(text, "{when: {time: 700ms}, fault: node-start, on: n2}");
    assert_int_equal(played, 1);
}

static void test_a_cut_of_an_agent_that_is_alone_is_not_played(void **state) {
    (void)state;
    struct sim_entry v[] = {entry_of(SIM_FAULT_NODE_CUT, 500)};
    struct script s = script_of(v, 1);
    v[0].node = 0;
    s.schedule.agents = s.schedule.min = s.schedule.max = 1;
    entries[0].node = 0;
    int played;
    assert_says(written(&s, &played), "no frame from it would be dropped");
    assert_int_equal(played, 0);
}

/* --- expectations --- */

static void test_a_job_goes_on_to_succeed(void **state) {
    (void)state;
    struct sim_entry v[] = {entry_of(SIM_FAULT_WORKER_FAIL, 500),
                            entry_of(SIM_FAULT_NODE_CUT, 1500)};
    struct script s = script_of(v, 2);
    assert_says(written(&s, NULL), "expect:\n  outcome: succeeded\n  restarts: 0..1\n"
                                   "limits: {total: 92s}\n");
}

static void test_a_job_whose_budget_is_spent_fails_and_is_over(void **state) {
    (void)state;
    struct sim_entry v[] = {entry_of(SIM_FAULT_WORKER_FAIL, 500),
                            entry_of(SIM_FAULT_WORKER_FAIL, 1500),
                            entry_of(SIM_FAULT_NODE_KILL, 2500)};
    struct script s = script_of(v, 3);
    const char *text = written(&s, NULL);
    assert_says(text, "  outcome: failed\n  restarts: 0..1\n");
    assert_says(text, "# not played: node-kill on n1: the job is over by then");
}

static void test_failures_at_one_time_cost_one_restart(void **state) {
    (void)state;
    struct sim_entry v[] = {entry_of(SIM_FAULT_WORKER_FAIL, 500),
                            entry_of(SIM_FAULT_WORKER_FAIL, 510)};
    v[1].node = 2;
    struct script s = script_of(v, 2);
    assert_says(written(&s, NULL), "  outcome: succeeded\n  restarts: 0..1\n");
}

/* What could be of one round or of two is made to be of two. */
static void test_failures_one_behind_the_other_are_of_two_rounds(void **state) {
    (void)state;
    struct sim_entry v[] = {entry_of(SIM_FAULT_WORKER_FAIL, 500),
                            entry_of(SIM_FAULT_WORKER_FAIL, 600),
                            entry_of(SIM_FAULT_NODE_KILL, 1500)};
    struct script s = script_of(v, 3);
    s.schedule.max_restarts = 3;
    const char *text = written(&s, NULL);
    assert_says(text, "{when: {time: 300ms}, fault: worker-exit");
    assert_says(text, "{when: {time: 600ms}, fault: worker-exit");
    assert_says(text, "{when: {time: 1.500s}, fault: node-kill");
    assert_says(text, "  outcome: succeeded\n  restarts: 0..2\n");
}

static void test_a_job_that_is_all_or_nothing_fails_with_its_node(void **state) {
    (void)state;
    struct sim_entry v[] = {entry_of(SIM_FAULT_NODE_POWEROFF, 500)};
    struct script s = script_of(v, 1);
    s.schedule.gang = true;
    const char *text = written(&s, NULL);
    assert_says(text, "launcher_args: [--on-node-loss=gang]");
    assert_says(text, "  outcome: failed\n  restarts: 0\n");
}

static void test_a_job_whose_agents_are_all_told_to_leave_is_stopped(void **state) {
    (void)state;
    struct sim_entry v[] = {entry_of(SIM_FAULT_AGENT_LEAVE, 500),
                            entry_of(SIM_FAULT_LEAVE_STORM, 1500)};
    struct script s = script_of(v, 2);
    assert_says(written(&s, NULL), "  outcome: stopped\n");
}

static void test_who_is_away_comes_when_all_heals_unless_the_job_is_over(void **state) {
    (void)state;
    struct sim_entry v[] = {entry_of(SIM_FAULT_NODE_KILL, 500),
                            entry_of(SIM_FAULT_AGENT_KILL, 1500)};
    v[1].node = 2;
    struct script s = script_of(v, 2);
    const char *text = written(&s, NULL);
    assert_says(text, "# all heals: who is away comes\n");
    assert_says(text, "{when: {time: 5.000s}, fault: node-start, on: n1}");
    assert_says(text, "{when: {time: 4.700s}, fault: node-kill, on: n2}");
    assert_says(text, "{when: {time: 5.000s}, fault: node-start, on: n2}");
    assert_says(text, "  outcome: succeeded\n");
    s.schedule.gang = true;
    assert_null(strstr(written(&s, NULL), "all heals"));
}

static void test_a_store_in_an_agent_is_one_there_unless_its_node_ends(void **state) {
    (void)state;
    struct sim_entry v[] = {entry_of(SIM_FAULT_STORE_AWAY, 500)};
    struct script s = script_of(v, 1);
    s.schedule.hosted = true;
    const char *text = written(&s, NULL);
    assert_says(text, "store: {on: n0}}");
    assert_says(text, "groups: \"n1,n2|n0\"");
    struct sim_entry kill[] = {entry_of(SIM_FAULT_NODE_KILL, 500)};
    kill[0].node = 0;
    s = script_of(kill, 1);
    s.schedule.hosted = true;
    assert_says(written(&s, NULL), "# not played: n0's agent has the store");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_is_a_line_that_is_accepted_or_a_comment_with_a_reason),
        cmocka_unit_test(test_what_is_drawn_is_accepted),
        cmocka_unit_test(test_a_line_that_would_strike_nobody_is_not_played),
        cmocka_unit_test(test_who_comes_back_is_a_line_and_can_be_struck_again),
        cmocka_unit_test(test_who_has_left_is_off_before_it_comes_back),
        cmocka_unit_test(test_nodes_that_come_later_are_the_last_and_the_job_can_begin),
        cmocka_unit_test(test_a_cut_of_an_agent_that_is_alone_is_not_played),
        cmocka_unit_test(test_a_job_goes_on_to_succeed),
        cmocka_unit_test(test_a_job_whose_budget_is_spent_fails_and_is_over),
        cmocka_unit_test(test_failures_at_one_time_cost_one_restart),
        cmocka_unit_test(test_failures_one_behind_the_other_are_of_two_rounds),
        cmocka_unit_test(test_a_job_that_is_all_or_nothing_fails_with_its_node),
        cmocka_unit_test(test_a_job_whose_agents_are_all_told_to_leave_is_stopped),
        cmocka_unit_test(test_who_is_away_comes_when_all_heals_unless_the_job_is_over),
        cmocka_unit_test(test_a_store_in_an_agent_is_one_there_unless_its_node_ends),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
