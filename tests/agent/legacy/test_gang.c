/* A gang ends with the first of its nodes that is lost or leaves, and only with that. */
#include "tests/agent/legacy/fixture.h"

static void begin_gang(int n, int min, int max, int max_restarts) {
    f = fleet_new(1, min, max, max_restarts);
    fleet_gang(f);
    for (int i = 0; i < n; i++)
        fleet_start(f, i);
    fleet_run(f, 4 * S);
    assert_round((1u << n) - 1, 1);
}

static void assert_gang_ended(int lost, int n) {
    assert_round(0, 0);
    for (int i = 0; i < n; i++) {
        if (i == lost)
            continue;
        assert_int_equal(fleet_agent(f, i)->exit_code, 1);
        assert_non_null(
            strstr(fleet_agent(f, i)->exit_text, "was lost or left, and --on-node-loss=gang"));
    }
}

static void test_a_gang_ends_with_the_node_that_is_lost(void **state) {
    (void)state;
    begin_gang(3, 1, 3, 3);
    fleet_crash(f, 1);
    fleet_run(f, 15 * S);
    assert_gang_ended(1, 3);
    fleet_start(f, 3); /* whoever comes later is told */
    fleet_run(f, 2 * S);
    assert_int_equal(fleet_agent(f, 3)->exit_code, 1);
    assert_non_null(strstr(fleet_agent(f, 3)->exit_text, "was lost or left"));
}

/* Its peers' workers feel it at once, and all are about to begin anew when its key expires. */
static void test_a_gang_ends_with_a_node_whose_loss_the_workers_felt_first(void **state) {
    (void)state;
    begin_gang(3, 1, 3, 3);
    fleet_crash(f, 1);
    fleet_exit(f, 0, 1 << 8);
    fleet_exit(f, 2, 1 << 8);
    fleet_run(f, 15 * S);
    assert_gang_ended(1, 3);
}

/* Who was cut off when the key expired reads later that it is missing, and not how that came. */
static void test_a_gang_ends_with_a_node_whose_key_nobody_saw_expire(void **state) {
    (void)state;
    begin_gang(2, 1, 2, 3);
    fleet_crash(f, 1);
    fleet_run(f, 7 * S);
    fleet_cut(f, 0, 4 * S);
    fleet_run(f, 10 * S);
    assert_gang_ended(1, 2);
}

static void test_a_gang_ends_with_a_node_that_leaves(void **state) {
    (void)state;
    begin_gang(2, 1, 2, 3);
    fleet_signal(f, 1, SIGTERM);
    fleet_run(f, 5 * S);
    assert_int_equal(fleet_agent(f, 1)->exit_code, 128 + SIGTERM);
    assert_gang_ended(1, 2);
}

static void test_a_gang_restarts_after_a_worker_and_takes_in_newcomers(void **state) {
    (void)state;
    begin_gang(2, 1, 3, 3);
    fleet_exit(f, 1, SIGKILL);
    fleet_run(f, 6 * S);
    assert_round(3, 2);
    fleet_start(f, 2);
    fleet_run(f, 6 * S);
    assert_round(7, 3);
    fleet_run(f, 60 * S);
    assert_round(7, 3);
}

static void test_a_spare_that_leaves_ends_no_gang(void **state) {
    (void)state;
    begin_gang(2, 1, 2, 3);
    fleet_start(f, 2);
    fleet_run(f, 4 * S);
    fleet_signal(f, 2, SIGTERM);
    fleet_run(f, 20 * S);
    assert_int_equal(fleet_agent(f, 2)->exit_code, 128 + SIGTERM);
    assert_round(3, 1);
}

/* Whoever comes meanwhile has all begin anew, which may be before the key of the lost one expires, or after. */
static void test_a_gang_ends_also_while_it_makes_room(void **state) {
    (void)state;
    for (int after_ms = 6000; after_ms < 10400; after_ms += 50) {
        begin_gang(3, 1, 4, 3);
        fleet_crash(f, 1);
        fleet_run(f, after_ms * MS);
        fleet_start(f, 3);
        fleet_run(f, 20 * S);
        assert_gang_ended(1, 4);
        end(NULL);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_gang_ends_with_the_node_that_is_lost, end),
        cmocka_unit_test_teardown(test_a_gang_ends_with_a_node_whose_loss_the_workers_felt_first,
                                  end),
        cmocka_unit_test_teardown(test_a_gang_ends_with_a_node_whose_key_nobody_saw_expire, end),
        cmocka_unit_test_teardown(test_a_gang_ends_with_a_node_that_leaves, end),
        cmocka_unit_test_teardown(test_a_gang_restarts_after_a_worker_and_takes_in_newcomers, end),
        cmocka_unit_test_teardown(test_a_spare_that_leaves_ends_no_gang, end),
        cmocka_unit_test_teardown(test_a_gang_ends_also_while_it_makes_room, end),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
