#include "base/sys/process.h"
#include "base/sys/signals.h"
#include "tests/agent/experiment.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *self;

#define EXPERIMENT(function, name)                                                                 \
    static void function(void **state) {                                                           \
        (void)state;                                                                               \
        experiment(self, "spawn_process", name);                                                   \
    }

EXPERIMENT(test_an_exit_code_comes_back, "exit-code")
EXPERIMENT(test_a_program_that_is_not_there_is_named_and_leaves_no_child, "no-such-program")
EXPERIMENT(test_a_child_gets_only_the_descriptors_it_is_given, "descriptors")
EXPERIMENT(test_streams_directory_and_environment_are_the_ones_asked_for,
           "streams-directory-environment")
EXPERIMENT(test_a_child_with_a_death_signal_dies_with_its_parent, "death-signal")
EXPERIMENT(test_an_outcome_is_seen_as_a_zombie_and_after_the_reaping, "outcome-seen-by-others")
EXPERIMENT(test_descendants_are_found_over_sessions_and_dead_parents, "descendants")

EXPERIMENT(test_all_descendants_are_ended_also_those_that_keep_forking, "end-descendants")

static void test_signals_have_names_both_ways(void **state) {
    (void)state;
    assert_string_equal(signal_name(SIGTERM), "SIGTERM");
    assert_string_equal(signal_name(63), "signal 63");
    assert_int_equal(signal_number("SIGUSR1"), SIGUSR1);
    assert_int_equal(signal_number("HUP"), SIGHUP);
    assert_int_equal(signal_number("9"), 9);
    assert_int_equal(signal_number("NOPE"), 0);
    assert_int_equal(signal_number("1000"), 0);
}

static void on_nothing(int signo) {
}

static void test_masks_of_signals_are_told(void **state) {
    (void)state;
    signal(SIGUSR2, on_nothing);
    assert_true(process_has_signal(getpid(), "SigCgt:", SIGUSR2));
    assert_false(process_has_signal(getpid(), "SigIgn:", SIGUSR2));
    signal(SIGUSR2, SIG_IGN);
    assert_false(process_has_signal(getpid(), "SigCgt:", SIGUSR2));
    assert_true(process_has_signal(getpid(), "SigIgn:", SIGUSR2));
    signal(SIGUSR2, SIG_DFL);
    assert_int_equal(process_status_number(getpid(), getpid(), "PPid:", 10), getppid());
    assert_false(process_has_signal(-1, "SigCgt:", SIGUSR2));
}

int main(int argc, char **argv) {
    self = argv[0];
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks_of_signals_are_told),
        cmocka_unit_test(test_an_exit_code_comes_back),
        cmocka_unit_test(test_a_program_that_is_not_there_is_named_and_leaves_no_child),
        cmocka_unit_test(test_a_child_gets_only_the_descriptors_it_is_given),
        cmocka_unit_test(test_streams_directory_and_environment_are_the_ones_asked_for),
        cmocka_unit_test(test_a_child_with_a_death_signal_dies_with_its_parent),
        cmocka_unit_test(test_an_outcome_is_seen_as_a_zombie_and_after_the_reaping),
        cmocka_unit_test(test_descendants_are_found_over_sessions_and_dead_parents),
        cmocka_unit_test(test_all_descendants_are_ended_also_those_that_keep_forking),
        cmocka_unit_test(test_signals_have_names_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
