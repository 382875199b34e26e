/* Every test is an experiment of spawn_guard or spawn_guard_death, in processes of its own. */
#include "tests/agent/experiment.h"
#include "base/sys/descriptors.h"

static const char *self;

#define EXPERIMENT(function, program, name)                                                        \
    static void function(void **state) {                                                           \
        (void)state;                                                                               \
        experiment(self, program, name);                                                           \
    }

EXPERIMENT(test_exit_codes_of_all_workers_come_back_and_the_group_is_reaped, "spawn_guard",
           "workers_exit")
EXPERIMENT(test_each_worker_has_a_session_of_its_own, "spawn_guard", "own_session")
EXPERIMENT(test_a_worker_that_is_told_to_stop_may_end_in_its_own_way, "spawn_guard",
           "stop_with_grace")
EXPERIMENT(test_a_worker_that_ignores_the_signal_is_killed_after_the_grace, "spawn_guard",
           "stop_ignored")
EXPERIMENT(test_a_second_stop_with_a_shorter_grace_shortens_it, "spawn_guard", "stop_shortened")
EXPERIMENT(test_a_stopped_worker_still_hears_that_it_must_end, "spawn_guard",
           "stop_reaches_stopped")
EXPERIMENT(test_a_user_signal_is_only_passed_on, "spawn_guard", "other_signals")
EXPERIMENT(test_children_of_workers_are_gone_when_the_group_is_reaped, "spawn_guard",
           "grandchildren")
EXPERIMENT(test_what_a_shell_runs_has_the_grace_of_the_shell, "spawn_guard", "child_has_grace")
EXPERIMENT(test_what_finished_workers_leave_behind_is_ended_too, "spawn_guard", "left_behind")
EXPERIMENT(test_the_guard_and_every_worker_hold_the_lifeline_until_they_are_gone, "spawn_guard",
           "lifeline_held")
EXPERIMENT(test_a_program_that_is_not_there_is_named_for_each_worker, "spawn_guard",
           "no_such_program")
EXPERIMENT(test_the_error_file_of_a_worker_is_read, "spawn_guard", "error_file")
EXPERIMENT(test_groups_started_and_stopped_again_and_again_leave_nothing, "spawn_guard",
           "again_and_again")
EXPERIMENT(test_nothing_is_started_without_a_deadline_or_after_it, "spawn_guard_death",
           "deadline_passed")
EXPERIMENT(test_the_guard_kills_at_the_fence_and_serves_the_next_round, "spawn_guard_death",
           "fence")
EXPERIMENT(test_a_stopped_guard_dies_at_the_hard_deadline_with_its_workers, "spawn_guard_death",
           "guard_stopped")
EXPERIMENT(test_a_killed_guard_takes_its_workers_and_their_children_along, "spawn_guard_death",
           "guard_killed")
EXPERIMENT(test_a_guard_shows_its_own_name, "spawn_guard_death", "own_name")
EXPERIMENT(test_a_killed_agent_leaves_nothing, "spawn_guard_death", "agent_killed")
EXPERIMENT(test_a_killed_agent_wakes_a_stopped_guard, "spawn_guard_death",
           "agent_killed_guard_stopped")
EXPERIMENT(test_a_stopped_agent_loses_its_workers_at_the_fence, "spawn_guard_death",
           "agent_stopped")
EXPERIMENT(test_agent_guard_and_workers_all_stopped_die_by_the_kernels_timer, "spawn_guard_death",
           "all_stopped")

static void test_a_worker_has_the_agents_environment_and_its_own_over_it(void **state) {
    (void)state;
    experiment(self, "spawn_guard", "environment");
}

static void test_each_stream_goes_into_its_file_and_is_shown_with_its_prefix(void **state) {
    (void)state;
    experiment(self, "spawn_guard", "streams");
}

static void test_a_child_that_is_none_of_the_guards_is_left_alone(void **state) {
    (void)state;
    experiment(self, "spawn_guard_death", "spared_child");
}

int main(int argc, char **argv) {
    descriptors_open_standard(); /* those of the processes that are started here */
    self = argv[0];
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_codes_of_all_workers_come_back_and_the_group_is_reaped),
        cmocka_unit_test(test_each_worker_has_a_session_of_its_own),
        cmocka_unit_test(test_a_worker_that_is_told_to_stop_may_end_in_its_own_way),
        cmocka_unit_test(test_a_worker_that_ignores_the_signal_is_killed_after_the_grace),
        cmocka_unit_test(test_a_second_stop_with_a_shorter_grace_shortens_it),
        cmocka_unit_test(test_a_stopped_worker_still_hears_that_it_must_end),
        cmocka_unit_test(test_a_user_signal_is_only_passed_on),
        cmocka_unit_test(test_children_of_workers_are_gone_when_the_group_is_reaped),
        cmocka_unit_test(test_what_a_shell_runs_has_the_grace_of_the_shell),
        cmocka_unit_test(test_what_finished_workers_leave_behind_is_ended_too),
        cmocka_unit_test(test_the_guard_and_every_worker_hold_the_lifeline_until_they_are_gone),
        cmocka_unit_test(test_a_program_that_is_not_there_is_named_for_each_worker),
        cmocka_unit_test(test_the_error_file_of_a_worker_is_read),
        cmocka_unit_test(test_groups_started_and_stopped_again_and_again_leave_nothing),
        cmocka_unit_test(test_a_worker_has_the_agents_environment_and_its_own_over_it),
        cmocka_unit_test(test_each_stream_goes_into_its_file_and_is_shown_with_its_prefix),
        cmocka_unit_test(test_nothing_is_started_without_a_deadline_or_after_it),
        cmocka_unit_test(test_the_guard_kills_at_the_fence_and_serves_the_next_round),
        cmocka_unit_test(test_a_stopped_guard_dies_at_the_hard_deadline_with_its_workers),
        cmocka_unit_test(test_a_killed_guard_takes_its_workers_and_their_children_along),
        cmocka_unit_test(test_a_child_that_is_none_of_the_guards_is_left_alone),
        cmocka_unit_test(test_a_guard_shows_its_own_name),
        cmocka_unit_test(test_a_killed_agent_leaves_nothing),
        cmocka_unit_test(test_a_killed_agent_wakes_a_stopped_guard),
        cmocka_unit_test(test_a_stopped_agent_loses_its_workers_at_the_fence),
        cmocka_unit_test(test_agent_guard_and_workers_all_stopped_die_by_the_kernels_timer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
