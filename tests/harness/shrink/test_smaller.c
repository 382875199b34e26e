/* One step towards a smaller scenario: what is taken away, and what goes or changes with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/shrink/node_names.h"
#include "harness/shrink/smaller.h"
#include "tests/harness/scenario/scratch.h"

static const char *const no_checks[] = {NULL};

static const char four[] =
    "scenario: x\n"
    "cluster: {nodes: 4, start: 3}\n"
    "job: {nnodes: \"2:4\", workers_per_node: 2, run: [ranktrain, --steps=200]}\n"
    "timeline:\n"
    "  - {id: one, when: {step: 50}, fault: worker-kill, on: rank 1}\n"
    "  - {id: cut, when: {after: one, plus: 2s}, fault: net-partition, on: n2}\n"
    "  - {id: fix, when: {after: cut, plus: 1s}, heal: cut}\n"
    "  - {id: grow, when: {after: cut, round: 3, step: 120}, fault: node-start, on: n3}\n"
    "expect: {outcome: succeeded, restarts: 1, world_sizes: [6, 6], model: same-as-undisturbed,\n"
    "         recover_within: {one: 5s, grow: 9s}, goodput: 20%}\n";

struct fixture {
    struct scratch given, again;
    struct arena arena;
    const struct scenario *s; /* again, as loaded */
};

static void load(struct fixture *f, const char *text) {
    *f = (struct fixture){0};
    scratch_load(&f->given, text);
    if (!f->given.s)
        fail_msg("%s", buf_str(&f->given.d.out));
}

/* What was made of it must load. */
static void take(struct fixture *f, const struct scenario *made) {
    struct buf text = {0};
    assert_non_null(made);
    scenario_print(made, &text);
    if (f->s)
        scratch_drop(&f->again);
    scratch_load(&f->again, buf_str(&text));
    if (!f->again.s)
        fail_msg("%s%s", buf_str(&text), buf_str(&f->again.d.out));
    f->s = f->again.s;
    buf_fini(&text);
}

static void drop(struct fixture *f) {
    scratch_drop(&f->given);
    if (f->s)
        scratch_drop(&f->again);
    arena_fini(&f->arena);
}

static void test_what_is_expected_besides_the_failing_check_goes(void **state) {
    (void)state;
    struct fixture f;
    const char *const checks[] = {"model", "ranks", NULL};
    load(&f, four);
    take(&f, smaller_expect(&f.arena, f.given.s, checks));
    assert_true(f.s->expect.model_same);
    assert_false(f.s->expect.has_world_sizes);
    assert_false(f.s->expect.has_restarts);
    assert_int_equal(f.s->expect.recover_n, 0);
    assert_int_equal(f.s->expect.goodput, 0);
    assert_int_equal(f.s->timeline_n, 4);
    drop(&f);
}

static void test_a_line_that_came_after_one_that_goes_takes_its_moment(void **state) {
    (void)state;
    struct fixture f;
    bool gone[] = {true, false, false, false};
    load(&f, four);
    take(&f, smaller_timeline(&f.arena, f.given.s, gone));
    assert_int_equal(f.s->timeline_n, 3);
    assert_string_equal(f.s->timeline[0].id, "cut");
    assert_int_equal(f.s->timeline[0].when.after, -1);
    assert_int_equal(f.s->timeline[0].when.step, 50);
    assert_int_equal(f.s->timeline[0].when.plus_ns, 2000000000);
    assert_int_equal(f.s->timeline[1].heal, 0);
    assert_int_equal(f.s->timeline[2].when.after, 0);
    assert_int_equal(f.s->expect.recover_n, 1);
    assert_string_equal(f.s->expect.recover_within[0].id, "grow");
    assert_false(f.s->expect.has_world_sizes);
    drop(&f);
}

static void test_a_heal_goes_with_what_it_heals_and_conditions_of_its_own_stay(void **state) {
    (void)state;
    struct fixture f;
    bool gone[] = {false, true, false, false};
    load(&f, four);
    take(&f, smaller_timeline(&f.arena, f.given.s, gone));
    assert_true(gone[2]);
    assert_int_equal(f.s->timeline_n, 2);
    assert_int_equal(f.s->timeline[1].when.after, 0);
    assert_int_equal(f.s->timeline[1].when.step, 120);
    assert_int_equal(f.s->timeline[1].when.round, 3);
    drop(&f);
}

static void test_a_chain_of_several_that_go_is_followed_to_its_beginning(void **state) {
    (void)state;
    struct fixture f;
    bool gone[] = {true, true, true, false};
    load(&f, four);
    take(&f, smaller_timeline(&f.arena, f.given.s, gone));
    assert_int_equal(f.s->timeline_n, 1);
    assert_int_equal(f.s->timeline[0].when.after, -1);
    assert_true(f.s->timeline[0].when.has_round);
    take(&f, smaller_rounds(&f.arena, f.s));
    assert_false(f.s->timeline[0].when.has_round);
    assert_null(smaller_rounds(&f.arena, f.s));
    drop(&f);
}

static void test_nodes_behind_one_that_goes_move_up_wherever_they_are_named(void **state) {
    (void)state;
    struct fixture f;
    const bool gone[] = {true, true, false, false};
    load(&f, four);
    assert_false(node_names_has(f.given.s, 0));
    assert_true(node_names_has(f.given.s, 2));
    assert_true(node_names_has(f.given.s, 3));
    take(&f, smaller_cluster(&f.arena, f.given.s, gone));
    assert_int_equal(f.s->cluster.nodes, 2);
    assert_int_equal(f.s->cluster.start, 1);
    assert_int_equal(f.s->job.max_nodes, 2);
    assert_int_equal(f.s->job.min_nodes, 2);
    assert_string_equal(f.s->timeline[1].on.text, "n0");
    assert_string_equal(f.s->timeline[3].on.text, "n1");
    drop(&f);
}

static void test_racks_lose_nodes_but_none_goes(void **state) {
    (void)state;
    struct fixture f;
    const bool one[] = {false, true, false}, rack[] = {true, true, false};
    load(&f, "cluster: {nodes: 3, racks: [[n0, n1], [n2]]}\n"
             "job: {run: [ls]}\n"
             "timeline: [{when: {time: 1s}, fault: node-kill, on: rack 1}]\n");
    assert_null(smaller_cluster(&f.arena, f.given.s, rack));
    take(&f, smaller_cluster(&f.arena, f.given.s, one));
    assert_int_equal(f.s->cluster.rack_of[0], 1);
    assert_int_equal(f.s->cluster.rack_of[1], 2);
    drop(&f);
}

static void test_an_end_goes_with_the_line_it_waits_for(void **state) {
    (void)state;
    struct fixture f;
    bool first[] = {true, false, false}, last[] = {false, false, true};
    load(&f, "cluster: {nodes: 3}\n"
             "job: {run: [ls]}\n"
             "timeline:\n"
             "  - {id: a, when: {time: 1s}, fault: node-kill, on: n0}\n"
             "  - {id: b, when: {time: 2s}, fault: net-partition, on: n1, until: {after: c}}\n"
             "  - {id: c, when: {time: 3s}, fault: node-kill, on: n2}\n");
    const struct scenario *without = smaller_timeline(&f.arena, f.given.s, last);
    assert_null(without->timeline[1].until);
    take(&f, smaller_timeline(&f.arena, f.given.s, first));
    assert_int_equal(f.s->timeline[0].until->after, 1);
    drop(&f);
}

static void test_a_group_of_a_partition_names_its_nodes(void **state) {
    (void)state;
    struct fixture f;
    const bool gone[] = {false, true, false, false};
    load(&f, "cluster: {nodes: 4, store: {on: n3}}\n"
             "job: {run: [ls]}\n"
             "timeline:\n"
             "  - {when: {time: 1s}, fault: net-partition, with: {groups: \"n0,store|n2\"}}\n");
    assert_true(node_names_has(f.given.s, 0));
    assert_false(node_names_has(f.given.s, 1));
    assert_true(node_names_has(f.given.s, 2));
    assert_true(node_names_has(f.given.s, 3));
    take(&f, smaller_cluster(&f.arena, f.given.s, gone));
    assert_string_equal(f.s->timeline[0].with[0].value, "n0,store|n1");
    assert_string_equal(f.s->cluster.store_on, "n2");
    drop(&f);
}

static void test_nodes_are_renamed_where_a_job_or_a_probe_speaks_of_them(void **state) {
    (void)state;
    struct fixture f;
    const bool gone[] = {true, false, false, false};
    load(&f, "cluster: {nodes: 4}\n"
             "job: {run: [serve, --peers=n1:80, --model=resnet-n1, n50], env: {PEER: n2}}\n"
             "probe: {a: {cmd: [curl, 'http://n3:8080/n'], on: n1},\n"
             "        b: {http: 'http://n2:80/health'}}\n");
    assert_false(node_names_has(f.given.s, 0));
    for (int node = 1; node < 4; node++)
        assert_true(node_names_has(f.given.s, node));
    take(&f, smaller_cluster(&f.arena, f.given.s, gone));
    assert_string_equal(f.s->job.run[1], "--peers=n0:80");
    assert_string_equal(f.s->job.run[2], "--model=resnet-n1");
    assert_string_equal(f.s->job.run[3], "n50");
    assert_string_equal(f.s->job.env[0].value, "n1");
    assert_string_equal(f.s->probes[0].cmd[1], "http://n2:8080/n");
    assert_string_equal(f.s->probes[0].on, "n0");
    assert_string_equal(f.s->probes[1].url, "http://n1:80/health");
    drop(&f);
}

static void test_lines_of_a_log_go_with_the_fault_they_come_after(void **state) {
    (void)state;
    struct fixture f;
    static const char *const checks[] = {"log", NULL};
    bool gone[] = {true, false};
    const bool nodes[] = {true, false, false};
    load(&f, "cluster: {nodes: 3}\njob: {run: [ls]}\n"
             "timeline:\n"
             "  - {id: a, when: {time: 1s}, fault: node-kill, on: n1}\n"
             "  - {id: b, when: {time: 2s}, fault: node-kill, on: n1}\n"
             "expect: {log: [{never: /x/, after: a}, {never: /y/, after: b, on: n2}]}\n");
    take(&f, smaller_expect(&f.arena, f.given.s, no_checks));
    assert_int_equal(f.s->expect.logs_n, 0);
    take(&f, smaller_expect(&f.arena, f.given.s, checks));
    take(&f, smaller_timeline(&f.arena, f.s, gone));
    assert_int_equal(f.s->expect.logs_n, 1);
    assert_true(node_names_has(f.s, 2));
    take(&f, smaller_cluster(&f.arena, f.s, nodes));
    assert_string_equal(f.s->expect.logs[0].on.text, "n1");
    drop(&f);
}

static void test_a_trigger_loses_one_condition_at_a_time_and_keeps_the_last(void **state) {
    (void)state;
    struct fixture f;
    load(&f, four);
    assert_null(smaller_line(&f.arena, f.given.s, 0, SMALLER_STEP));
    assert_null(smaller_line(&f.arena, f.given.s, 1, SMALLER_AFTER));
    take(&f, smaller_line(&f.arena, f.given.s, 3, SMALLER_AFTER));
    assert_int_equal(f.s->timeline[3].when.after, -1);
    take(&f, smaller_line(&f.arena, f.s, 3, SMALLER_ROUND));
    assert_true(f.s->timeline[3].when.has_step);
    assert_null(smaller_line(&f.arena, f.s, 3, SMALLER_STEP));
    take(&f, smaller_line(&f.arena, f.s, 3, SMALLER_SOONER));
    assert_int_equal(f.s->timeline[3].when.step, 60);
    take(&f, smaller_line(&f.arena, f.s, 1, SMALLER_PLUS));
    assert_int_equal(f.s->timeline[1].when.plus_ns, 0);
    drop(&f);
}

static void test_nobody_is_held_where_only_a_round_is_waited_for(void **state) {
    (void)state;
    struct fixture f;
    load(&f, four);
    take(&f, smaller_line(&f.arena, f.given.s, 3, SMALLER_STEP));
    assert_true(f.s->timeline[3].when.has_round);
    assert_false(f.s->timeline[3].when.hold);
    drop(&f);
}

static void test_times_become_one_and_the_third_event_the_first(void **state) {
    (void)state;
    struct fixture f;
    load(&f, "job: {run: [ls]}\n"
             "timeline:\n"
             "  - {when: {event: resume, nth: 3}, fault: worker-hang, on: workers, times: 4, for: "
             "4s}\n");
    take(&f, smaller_line(&f.arena, f.given.s, 0, SMALLER_NTH));
    assert_int_equal(f.s->timeline[0].when.nth, 1);
    assert_null(smaller_line(&f.arena, f.s, 0, SMALLER_NTH));
    take(&f, smaller_line(&f.arena, f.s, 0, SMALLER_TIMES));
    assert_int_equal(f.s->timeline[0].times_n, 1);
    take(&f, smaller_line(&f.arena, f.s, 0, SMALLER_SHORTER));
    assert_int_equal(f.s->timeline[0].for_ns, 2000000000);
    drop(&f);
}

static void test_what_had_an_end_lasts_without_it(void **state) {
    (void)state;
    struct fixture f;
    load(&f, "job: {run: [ranktrain, --steps=200]}\n"
             "timeline:\n"
             "  - {when: {step: 20}, fault: worker-hang, on: rank 1, until: {step: 120}}\n");
    assert_null(smaller_steps(&f.arena, f.given.s)); /* the end waits for 120 of 200 */
    take(&f, smaller_line(&f.arena, f.given.s, 0, SMALLER_UNTIL));
    assert_null(f.s->timeline[0].until);
    assert_true(f.s->timeline[0].when.has_step);
    assert_null(smaller_line(&f.arena, f.s, 0, SMALLER_UNTIL));
    take(&f, smaller_steps(&f.arena, f.s));
    drop(&f);
}

static void test_half_the_steps_are_left_where_no_trigger_waits_for_later_ones(void **state) {
    (void)state;
    struct fixture f;
    load(&f, four);
    assert_null(smaller_steps(&f.arena, f.given.s)); /* one waits for 120 of 200 */
    take(&f, smaller_line(&f.arena, f.given.s, 3, SMALLER_SOONER));
    take(&f, smaller_steps(&f.arena, f.s));
    assert_string_equal(f.s->job.run[1], "--steps=100");
    assert_null(smaller_steps(&f.arena, f.s));
    drop(&f);
}

static void test_a_target_that_was_drawn_is_named(void **state) {
    (void)state;
    struct fixture f;
    const char *const struck[] = {"n1/0", "n0", NULL};
    load(&f, "cluster: {nodes: 2}\njob: {run: [ls]}\n"
             "timeline:\n"
             "  - {when: {time: 1s}, fault: worker-kill, on: random of workers}\n"
             "  - {when: {time: 2s}, fault: node-kill, on: n1}\n"
             "  - {when: {time: 3s}, fault: node-kill, on: random of nodes}\n");
    take(&f, smaller_draws(&f.arena, f.given.s, struck));
    assert_string_equal(f.s->timeline[0].on.text, "n1/0");
    assert_string_equal(f.s->timeline[1].on.text, "n1");
    assert_string_equal(f.s->timeline[2].on.text, "random of nodes");
    drop(&f);
}

static void test_what_counts_the_faults_is_told_from_what_does_not(void **state) {
    (void)state;
    struct fixture f;
    load(&f, "job: {run: [ls]}\nexpect: {outcome: failed}\n");
    assert_true(smaller_is_counted(f.given.s, "restarts"));
    assert_true(smaller_is_counted(f.given.s, "world_sizes"));
    assert_true(smaller_is_counted(f.given.s, "outcome"));
    assert_false(smaller_is_counted(f.given.s, "model"));
    drop(&f);
    load(&f, "job: {run: [ls]}\nexpect: {log: [{never: /nan/}]}\n");
    assert_false(smaller_is_counted(f.given.s, "outcome"));
    assert_false(smaller_is_counted(f.given.s, "log"));
    drop(&f);
    load(&f, "job: {run: [ls]}\nexpect: {log: [{never: /nan/}, {once: /saved/}]}\n");
    assert_true(smaller_is_counted(f.given.s, "log"));
    drop(&f);
}

static void test_nothing_is_made_of_what_is_not_there(void **state) {
    (void)state;
    struct fixture f;
    bool none[1] = {false};
    load(&f, "cluster: {nodes: 1}\njob: {run: [ls]}\n");
    assert_null(smaller_timeline(&f.arena, f.given.s, none));
    assert_null(smaller_cluster(&f.arena, f.given.s, none));
    none[0] = true;
    assert_null(smaller_cluster(&f.arena, f.given.s, none));
    assert_null(smaller_workers(&f.arena, f.given.s, 1));
    assert_null(smaller_steps(&f.arena, f.given.s));
    assert_null(smaller_rounds(&f.arena, f.given.s));
    take(&f, smaller_expect(&f.arena, f.given.s, no_checks));
    take(&f, smaller_probes(&f.arena, f.given.s));
    drop(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_expected_besides_the_failing_check_goes),
        cmocka_unit_test(test_a_line_that_came_after_one_that_goes_takes_its_moment),
        cmocka_unit_test(test_a_heal_goes_with_what_it_heals_and_conditions_of_its_own_stay),
        cmocka_unit_test(test_a_chain_of_several_that_go_is_followed_to_its_beginning),
        cmocka_unit_test(test_nodes_behind_one_that_goes_move_up_wherever_they_are_named),
        cmocka_unit_test(test_racks_lose_nodes_but_none_goes),
        cmocka_unit_test(test_an_end_goes_with_the_line_it_waits_for),
        cmocka_unit_test(test_a_group_of_a_partition_names_its_nodes),
        cmocka_unit_test(test_nodes_are_renamed_where_a_job_or_a_probe_speaks_of_them),
        cmocka_unit_test(test_lines_of_a_log_go_with_the_fault_they_come_after),
        cmocka_unit_test(test_a_trigger_loses_one_condition_at_a_time_and_keeps_the_last),
        cmocka_unit_test(test_nobody_is_held_where_only_a_round_is_waited_for),
        cmocka_unit_test(test_times_become_one_and_the_third_event_the_first),
        cmocka_unit_test(test_what_had_an_end_lasts_without_it),
        cmocka_unit_test(test_half_the_steps_are_left_where_no_trigger_waits_for_later_ones),
        cmocka_unit_test(test_a_target_that_was_drawn_is_named),
        cmocka_unit_test(test_what_counts_the_faults_is_told_from_what_does_not),
        cmocka_unit_test(test_nothing_is_made_of_what_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
