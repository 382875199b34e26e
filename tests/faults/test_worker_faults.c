/* Faults on workers, tried on real processes by spawn_worker_faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/sys/descriptors.h"

static const char *self;

static void experiment(const char *name) {
    char command[512], said[512] = "";
    /* AddressSanitizer, where it is in there, is to let a worker crash as any does. */
    snprintf(
        command, sizeof(command),
        "ASAN_OPTIONS=$ASAN_OPTIONS:disable_coredump=0:handle_segv=0 %.*sspawn_worker_faults %s "
        "2>/dev/null",
        (int)(strrchr(self, '/') + 1 - self), self, name);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    if (!fgets(said, sizeof(said), out))
        said[0] = '\0';
    assert_string_equal(said, "ok\n");
    assert_int_equal(pclose(out), 0);
}

#define EXPERIMENT(function, name)                                                                 \
    static void function(void **state) {                                                           \
        (void)state;                                                                               \
        experiment(name);                                                                          \
    }

EXPERIMENT(test_a_worker_that_waits_exits_with_the_code, "poll")
EXPERIMENT(test_a_worker_that_computes_exits_with_the_code, "compute")
EXPERIMENT(test_a_worker_whose_call_would_be_restarted_exits_with_the_code, "sleep")
EXPERIMENT(test_a_worker_without_its_first_thread_exits_with_the_code, "threads")
EXPERIMENT(test_a_worker_that_stands_still_exits, "stopped")
EXPERIMENT(test_the_code_reaches_the_workers_own_parent, "parent")
EXPERIMENT(test_a_worker_that_has_ended_cannot_be_made_to_exit, "gone")
EXPERIMENT(test_a_worker_that_hangs_stands_until_it_is_let_go, "hang")
EXPERIMENT(test_the_children_of_a_worker_hang_with_it, "children")
EXPERIMENT(test_a_worker_that_is_deaf_to_a_signal_does_all_else_as_before, "deaf")
EXPERIMENT(test_a_slow_worker_stands_and_runs_in_turns_until_it_is_let_go, "slow")
EXPERIMENT(test_one_thread_is_held_while_the_others_run, "held")
EXPERIMENT(test_a_worker_of_one_thread_has_no_other_to_hold, "one-thread")
EXPERIMENT(test_a_worker_that_is_held_can_be_killed_and_its_parent_hears_of_it, "held-killed")
EXPERIMENT(test_a_lowered_limit_holds_until_it_is_given_back, "limits")
EXPERIMENT(test_the_child_of_a_worker_is_killed_and_nobody_else, "child")
EXPERIMENT(test_one_bit_is_flipped_and_no_other, "bit")
EXPERIMENT(test_a_worker_that_aborts_leaves_a_core_unless_its_handler_ends_it, "abort")
EXPERIMENT(test_a_worker_that_faults_leaves_a_core_unless_its_handler_ends_it, "segfault")
EXPERIMENT(test_a_worker_starts_no_processes_or_threads_until_it_may_again, "start")
EXPERIMENT(test_an_orphan_outlives_its_worker_until_it_is_ended, "orphan")
EXPERIMENT(test_a_worker_that_has_an_orphan_does_all_else_as_before, "orphan-naps")
EXPERIMENT(test_who_is_no_python_has_no_interpreter_lock, "no-python")
/* Where there is no Python nothing is asked. */
static void test_no_thread_runs_python_while_one_has_the_lock(void **state) {
    (void)state;
    if (system("python3 -c '' >/dev/null 2>&1") != 0)
        skip();
    experiment("python");
}

EXPERIMENT(test_hundreds_of_workers_end_with_their_fault_and_leave_room, "many")

int main(int argc, char **argv) {
    descriptors_open_standard(); /* those of the processes that are started here */
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_worker_that_waits_exits_with_the_code),
        cmocka_unit_test(test_a_worker_that_computes_exits_with_the_code),
        cmocka_unit_test(test_a_worker_whose_call_would_be_restarted_exits_with_the_code),
        cmocka_unit_test(test_a_worker_without_its_first_thread_exits_with_the_code),
        cmocka_unit_test(test_a_worker_that_stands_still_exits),
        cmocka_unit_test(test_the_code_reaches_the_workers_own_parent),
        cmocka_unit_test(test_a_worker_that_has_ended_cannot_be_made_to_exit),
        cmocka_unit_test(test_a_worker_that_hangs_stands_until_it_is_let_go),
        cmocka_unit_test(test_the_children_of_a_worker_hang_with_it),
        cmocka_unit_test(test_a_worker_that_is_deaf_to_a_signal_does_all_else_as_before),
        cmocka_unit_test(test_a_slow_worker_stands_and_runs_in_turns_until_it_is_let_go),
        cmocka_unit_test(test_one_thread_is_held_while_the_others_run),
        cmocka_unit_test(test_a_worker_of_one_thread_has_no_other_to_hold),
        cmocka_unit_test(test_a_worker_that_is_held_can_be_killed_and_its_parent_hears_of_it),
        cmocka_unit_test(test_a_lowered_limit_holds_until_it_is_given_back),
        cmocka_unit_test(test_one_bit_is_flipped_and_no_other),
        cmocka_unit_test(test_a_worker_that_aborts_leaves_a_core_unless_its_handler_ends_it),
        cmocka_unit_test(test_a_worker_that_faults_leaves_a_core_unless_its_handler_ends_it),
        cmocka_unit_test(test_a_worker_starts_no_processes_or_threads_until_it_may_again),
        cmocka_unit_test(test_an_orphan_outlives_its_worker_until_it_is_ended),
        cmocka_unit_test(test_a_worker_that_has_an_orphan_does_all_else_as_before),
        cmocka_unit_test(test_who_is_no_python_has_no_interpreter_lock),
        cmocka_unit_test(test_no_thread_runs_python_while_one_has_the_lock),
        cmocka_unit_test(test_hundreds_of_workers_end_with_their_fault_and_leave_room),
        cmocka_unit_test(test_the_child_of_a_worker_is_killed_and_nobody_else),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
