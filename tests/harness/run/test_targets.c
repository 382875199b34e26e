/* Whom a target of several means, among those that are there when the trigger comes true. */
#include "harness/run/timeline.h"
#include "tests/harness/run/stage.h"

static void aim_at_majority(struct action *a) {
    a->on = (struct target_spec){
        .what = TARGET_NODES, .pick = PICK_MAJORITY, .local_rank = -1, .text = "majority"};
}

static void test_a_majority_is_more_than_half_of_the_nodes_that_run(void **state) {
    (void)state;
    static const struct { int on, hit; } rows[] = {{3, 2}, {2, 2}, {1, 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct stage *s = stage_new();
        struct action *a = stage_add(s, "k", &kill_node);
        at_step(a, 5);
        aim_at_majority(a);
        for (int k = rows[i].on; k < NODES; k++)
            s->cluster.nodes[k].on = false;
        stage_begin(s);
        start_round(s, 1, rows[i].on);
        say_step(s, 100, 5);
        assert_int_equal(killed_nodes, rows[i].hit);
        stage_free(s);
    }
}

static void test_the_store_is_no_part_of_a_majority(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct action *a = stage_add(s, "k", &kill_node);
    at_step(a, 5);
    aim_at_majority(a);
    s->cluster.nodes[2].plan.is_store = true;
    stage_begin(s);
    start_round(s, 1, 2);
    say_step(s, 100, 5);
    assert_int_equal(killed_nodes, 2);
    const struct bound *b = s->engine.timeline->acts[0].bound;
    assert_string_equal(b[0].target.name, "n0");
    assert_string_equal(b[1].target.name, "n1");
    stage_free(s);
}

static void test_a_worker_fault_on_a_majority_hits_their_workers_in_the_order_of_names(void **s0) {
    (void)s0;
    struct stage *s = stage_new();
    struct action *a = stage_add(s, "k", &kill_worker);
    at_step(a, 5);
    aim_at_majority(a);
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 100, 5);
    assert_int_equal(injected_n, 2);
    assert_true(strcmp(injected[0], injected[1]) < 0);
    stage_free(s);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_majority_is_more_than_half_of_the_nodes_that_run),
        cmocka_unit_test(test_the_store_is_no_part_of_a_majority),
        cmocka_unit_test(
            test_a_worker_fault_on_a_majority_hits_their_workers_in_the_order_of_names),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
