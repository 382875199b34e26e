/* Trouble that is a node's: it comes again with the node. */
#include "harness/run/timeline.h"
#include "tests/harness/run/stage.h"

static struct timeline_entry *stick(struct stage *s, const struct fault *f) {
    struct timeline_entry *a = stage_add(s, "k", f);
    at_step(a, 5);
    a->sticky = true;
    return a;
}

static void start_agent(struct stage *s, const char *node) {
    struct json_writer *w = engine_record(&s->engine, SOURCE_KERNEL, "agent-start");
    json_put_string(w, "node", node);
    json_put_i64(w, "pid", 500);
    engine_recorded(&s->engine);
}

static void test_a_node_is_struck_again_whenever_its_agent_comes_back(void **state) {
    (void)state;
    struct stage *s = stage_new();
    aim_at_node(stick(s, &kill_node), "n1");
    stage_begin(s);
    start_agent(s, "n1"); /* before it was struck */
    start_round(s, 1, 3);
    say_step(s, 101, 5);
    assert_int_equal(killed_nodes, 1);
    start_agent(s, "n2"); /* another */
    assert_int_equal(killed_nodes, 1);
    start_agent(s, "n1");
    assert_int_equal(killed_nodes, 2);
    start_agent(s, "n1");
    assert_int_equal(killed_nodes, 3);
    say_step(s, 101, 5);
    stage_end(s);
    assert_int_equal(count_records(s, "fault-in-force", "k"), 3);
    assert_int_equal(count_records(s, "fault-not-fired", "k"), 0);
    stage_free(s);
}

static void test_a_draw_is_made_once(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stick(s, &kill_node);
    a->on = (struct target_spec){.what = TARGET_NODES, .pick = PICK_RANDOM, .count = 1};
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 101, 5);
    const struct run_entry *act = &stage_acts(s)[0];
    const char *drawn = node_plan(act->bound[0].node)->name;
    for (int i = 0; i < 10; i++) {
        start_agent(s, drawn);
        assert_string_equal(node_plan(act->bound[0].node)->name, drawn);
    }
    assert_int_equal(killed_nodes, 11);
    stage_free(s);
}

static void test_a_worker_is_struck_as_soon_as_the_node_has_it_again(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stick(s, &kill_worker);
    a->on = (struct target_spec){.what = TARGET_WORKERS, .pick = PICK_RANK, .rank = 2};
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 102, 5);
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    for (int rank = 0; rank < 3; rank++)
        end_worker(s, 100 + rank);
    start_agent(s, "n2");
    assert_int_equal(injected_n, 1);
    start_round(s, 2, 3);
    assert_int_equal(injected_n, 2);
    assert_string_equal(injected[1], "n2/0 (rank 2)");
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    for (int rank = 0; rank < 3; rank++)
        end_worker(s, 200 + rank);
    start_round(s, 3, 3); /* the agent has not been away */
    assert_int_equal(injected_n, 2);
    stage_free(s);
}

static void test_a_node_that_came_back_without_its_target_is_told(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stick(s, &kill_worker);
    aim_at(a, "n2", 0);
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 102, 5);
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    end_worker(s, 102);
    start_agent(s, "n2");
    stage_end(s);
    assert_int_equal(count_records(s, "fault-not-fired", "k"), 1);
    start_agent(s, "n2"); /* it is over */
    assert_int_equal(injected_n, 1);
    stage_free(s);
}

static void test_what_lasts_is_ended_and_comes_to_all_of_them_again(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stick(s, &cut);
    a->on = (struct target_spec){.what = TARGET_NODES, .pick = PICK_ALL};
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 102, 5);
    start_agent(s, "n1");
    assert_int_equal(count_records(s, "fault-in-force", "k"), 2);
    assert_int_equal(count_records(s, "fault-recovered", "k"), 1);
    assert_int_equal(stage_acts(s)[0].bound_n, 3);
    stage_free(s);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_node_is_struck_again_whenever_its_agent_comes_back),
        cmocka_unit_test(test_a_draw_is_made_once),
        cmocka_unit_test(test_a_worker_is_struck_as_soon_as_the_node_has_it_again),
        cmocka_unit_test(test_a_node_that_came_back_without_its_target_is_told),
        cmocka_unit_test(test_what_lasts_is_ended_and_comes_to_all_of_them_again),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
