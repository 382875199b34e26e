/* Whom a target of several means, among those that are there when the trigger comes true. */
#include "harness/run/timeline.h"
#include "tests/harness/run/stage.h"

static void aim_at_majority(struct timeline_entry *a) {
    a->on = (struct target_spec){
        .what = TARGET_NODES, .pick = PICK_MAJORITY, .local_rank = -1, .text = "majority"};
}

static void test_a_majority_is_more_than_half_of_the_nodes_that_run(void **state) {
    (void)state;
    static const struct { int on, hit; } rows[] = {{3, 2}, {2, 2}, {1, 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct stage *s = stage_new();
        struct timeline_entry *a = stage_add(s, "k", &kill_node);
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
    struct timeline_entry *a = stage_add(s, "k", &kill_node);
    at_step(a, 5);
    aim_at_majority(a);
    s->cluster.nodes[2].plan.is_store = true;
    stage_begin(s);
    start_round(s, 1, 2);
    say_step(s, 100, 5);
    assert_int_equal(killed_nodes, 2);
    const struct bound *b = stage_acts(s)[0].bound;
    assert_string_equal(b[0].target.name, "n0");
    assert_string_equal(b[1].target.name, "n1");
    stage_free(s);
}

static void test_a_worker_fault_on_a_majority_hits_their_workers_in_the_order_of_names(void **s0) {
    (void)s0;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_worker);
    at_step(a, 5);
    aim_at_majority(a);
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 100, 5);
    assert_int_equal(injected_n, 2);
    assert_true(strcmp(injected[0], injected[1]) < 0);
    stage_free(s);
}

/* n0 and n1 are rack 0, n2 is rack 1. */
static struct timeline_entry *on_rack(struct stage *s, const struct fault *f,
                                      struct target_spec on) {
    static const int rack_of[NODES] = {1, 1, 2};
    s->scenario.cluster.nodes = NODES;
    s->scenario.cluster.racks = 2;
    s->scenario.cluster.rack_of = rack_of;
    struct timeline_entry *a = stage_add(s, "k", f);
    at_step(a, 5);
    a->on = on;
    a->on.local_rank = -1;
    stage_begin(s);
    start_round(s, 1, 3);
    return a;
}

static void test_a_rack_is_all_of_its_nodes_and_listens_to_their_workers_alone(void **state) {
    (void)state;
    struct stage *s = stage_new();
    on_rack(s, &kill_node, (struct target_spec){.rack = 1});
    assert_int_equal(say_step(s, 102, 5), 0);
    assert_int_equal(killed_nodes, 0);
    assert_int_equal(say_step(s, 101, 5), 1);
    assert_int_equal(killed_nodes, 2);
    assert_string_equal(stage_acts(s)[0].bound[1].target.name, "n1");
    stage_free(s);
}

static void test_a_worker_fault_on_a_rack_hits_the_workers_of_its_nodes(void **state) {
    (void)state;
    struct stage *s = stage_new();
    on_rack(s, &kill_worker, (struct target_spec){.rack = 1});
    say_step(s, 100, 5);
    assert_int_equal(injected_n, 2);
    assert_string_equal(injected[0], "n0/0 (rank 0)");
    assert_string_equal(injected[1], "n1/0 (rank 1)");
    stage_free(s);
}

static void test_one_of_a_rack_is_drawn_from_it(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct stage *s = stage_new();
        s->plan.seed = seed;
        on_rack(s, &kill_worker, (struct target_spec){.rack = 1, .pick = PICK_RANDOM, .count = 1});
        say_step(s, 100, 5);
        assert_int_equal(injected_n, 1);
        assert_string_not_equal(injected[0], "n2/0 (rank 2)");
        stage_free(s);
    }
}

static void test_a_drawn_rack_goes_as_a_whole(void **state) {
    (void)state;
    int hits[NODES + 1] = {0};
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct stage *s = stage_new();
        s->plan.seed = seed;
        on_rack(s, &kill_node,
                (struct target_spec){.what = TARGET_RACKS, .pick = PICK_RANDOM, .count = 1});
        say_step(s, 100, 5);
        hits[killed_nodes]++;
        stage_free(s);
    }
    assert_int_equal(hits[0] + hits[3], 0);
    assert_true(hits[1] > 5 && hits[2] > 5); /* either of them */
}

static void test_a_rack_that_is_off_is_not_drawn(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct stage *s = stage_new();
        s->plan.seed = seed;
        s->cluster.nodes[2].on = false;
        on_rack(s, &kill_node,
                (struct target_spec){.what = TARGET_RACKS, .pick = PICK_RANDOM, .count = 1});
        say_step(s, 100, 5);
        assert_int_equal(killed_nodes, 2);
        stage_free(s);
    }
}

static void test_the_rack_of_a_rank_is_that_of_its_node(void **state) {
    (void)state;
    struct stage *s = stage_new();
    on_rack(s, &kill_node,
            (struct target_spec){
                .pick = PICK_RANK, .rank = 1, .node_of_rank = true, .rack_of_rank = true});
    assert_int_equal(say_step(s, 102, 5), 0);
    assert_int_equal(say_step(s, 100, 5), 1); /* it is in the same rack */
    assert_int_equal(killed_nodes, 2);
    stage_free(s);
}

static void test_anybodys_step_counts_for_a_rack_without_workers(void **state) {
    (void)state;
    struct stage *s = stage_new();
    on_rack(s, &kill_node, (struct target_spec){.rack = 2});
    end_worker(s, 102);
    assert_int_equal(say_step(s, 100, 5), 1);
    assert_int_equal(killed_nodes, 1);
    stage_free(s);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_majority_is_more_than_half_of_the_nodes_that_run),
        cmocka_unit_test(test_the_store_is_no_part_of_a_majority),
        cmocka_unit_test(
            test_a_worker_fault_on_a_majority_hits_their_workers_in_the_order_of_names),
        cmocka_unit_test(test_a_rack_is_all_of_its_nodes_and_listens_to_their_workers_alone),
        cmocka_unit_test(test_a_worker_fault_on_a_rack_hits_the_workers_of_its_nodes),
        cmocka_unit_test(test_one_of_a_rack_is_drawn_from_it),
        cmocka_unit_test(test_a_drawn_rack_goes_as_a_whole),
        cmocka_unit_test(test_a_rack_that_is_off_is_not_drawn),
        cmocka_unit_test(test_the_rack_of_a_rank_is_that_of_its_node),
        cmocka_unit_test(test_anybodys_step_counts_for_a_rack_without_workers),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
