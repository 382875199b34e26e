/* rankquake_clock.so, in a program that has it: spawn_clock. */
#include "faults/mechanism/clock_page.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static const char *self;

static void experiment(const char *name) {
    const char *bin = getenv("BIN"), *tmp = getenv("TMPDIR");
    char path[512], command[2048], said[512] = "";
    snprintf(path, sizeof(path), "%s/clock-%s", tmp ? tmp : "/tmp", name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(clock_page_make(fd, NULL), 0);
    close(fd);
    snprintf(command, sizeof(command),
             "ASAN_OPTIONS=verify_asan_link_order=0 " CLOCK_PAGE_VARIABLE
             "=%s LD_PRELOAD=%s/" CLOCK_PRELOAD " %.*sspawn_clock %s",
             path, bin ? bin : "build/bin", (int)(strrchr(self, '/') + 1 - self), self, name);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    if (!fgets(said, sizeof(said), out))
        said[0] = '\0';
    assert_string_equal(said, "ok\n");
    assert_int_equal(pclose(out), 0);
    unlink(path);
}

#define EXPERIMENT(function, name)                                                                 \
    static void function(void **state) {                                                           \
        (void)state;                                                                               \
        experiment(name);                                                                          \
    }

EXPERIMENT(test_every_function_tells_the_wall_clock_that_is_set_and_no_other_moves, "functions")
EXPERIMENT(test_waits_for_a_time_last_as_long_as_they_should, "waits")
EXPERIMENT(test_a_clock_that_drifts_gains_or_loses, "drift")
EXPERIMENT(test_a_strobing_clock_is_wrong_and_right_in_turns, "strobe")
EXPERIMENT(test_what_a_program_was_told_is_noted_while_the_clock_is_wrong, "noted")
EXPERIMENT(test_threads_are_told_one_setting_or_the_next, "threads")
EXPERIMENT(test_a_page_that_a_job_has_cut_off_is_an_error_and_no_signal, "page")

int main(int argc, char **argv) {
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_function_tells_the_wall_clock_that_is_set_and_no_other_moves),
        cmocka_unit_test(test_waits_for_a_time_last_as_long_as_they_should),
        cmocka_unit_test(test_a_clock_that_drifts_gains_or_loses),
        cmocka_unit_test(test_a_strobing_clock_is_wrong_and_right_in_turns),
        cmocka_unit_test(test_what_a_program_was_told_is_noted_while_the_clock_is_wrong),
        cmocka_unit_test(test_threads_are_told_one_setting_or_the_next),
        cmocka_unit_test(test_a_page_that_a_job_has_cut_off_is_an_error_and_no_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
