/* Where programs are looked for; and the experiments of spawn_vfork_spawn, in processes of their
 * own. */
#include "agent/workers/vfork_spawn.h"
#include "tests/agent/experiment.h"
#include "base/sys/descriptors.h"

#include <stdlib.h>

static const char *self;
static struct arena arena;

static int clear(void **state) {
    (void)state;
    arena_fini(&arena);
    return 0;
}

static void test_a_program_is_looked_for_as_execvp_does(void **state) {
    (void)state;
    const char *const *files;
    char *path = strdup(getenv("PATH"));
    assert_non_null(path);
    setenv("PATH", "/a::b", 1);
    files = vfork_spawn_files("x", &arena);
    assert_string_equal(files[0], "/a/x");
    assert_string_equal(files[1], "x"); /* nothing between colons is the directory itself */
    assert_string_equal(files[2], "b/x");
    assert_null(files[3]);
    files = vfork_spawn_files("./x", &arena);
    assert_string_equal(files[0], "./x");
    assert_null(files[1]);
    files = vfork_spawn_files("", &arena);
    assert_string_equal(files[0], "");
    assert_null(files[1]);
    unsetenv("PATH");
    files = vfork_spawn_files("x", &arena);
    assert_string_equal(files[0], "/bin/x");
    assert_string_equal(files[1], "/usr/bin/x");
    assert_null(files[2]);
    setenv("PATH", path, 1);
    free(path);
}

static void test_the_first_program_that_may_be_executed_is(void **state) {
    (void)state;
    experiment(self, "spawn_vfork_spawn", "searched");
}

static void test_a_worker_has_no_descriptor_and_no_signal_of_its_parent(void **state) {
    (void)state;
    experiment(self, "spawn_vfork_spawn", "clean");
}

static void test_children_that_fail_leave_the_errno_of_their_parent_alone(void **state) {
    (void)state;
    experiment(self, "spawn_vfork_spawn", "errno_kept");
}

static void test_only_what_is_kept_is_open_in_a_worker(void **state) {
    (void)state;
    experiment(self, "spawn_vfork_spawn", "descriptors");
}

static void test_each_stream_is_its_file_whatever_the_guard_has_open(void **state) {
    (void)state;
    experiment(self, "spawn_vfork_spawn", "outputs");
}

static void test_a_worker_leads_a_session_and_dies_with_its_guard(void **state) {
    (void)state;
    experiment(self, "spawn_vfork_spawn", "bound");
}

static void test_what_stands_in_the_way_of_a_program_is_told(void **state) {
    (void)state;
    experiment(self, "spawn_vfork_spawn", "looked_for");
}

static void test_a_worker_that_hangs_before_its_exec_does_not_hang_the_guard(void **state) {
    (void)state;
    experiment(self, "spawn_guard", "hanging_output");
}

int main(int argc, char **argv) {
    descriptors_open_standard(); /* those of the processes that are started here */
    self = argv[0];
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_program_is_looked_for_as_execvp_does, clear),
        cmocka_unit_test(test_the_first_program_that_may_be_executed_is),
        cmocka_unit_test(test_a_worker_has_no_descriptor_and_no_signal_of_its_parent),
        cmocka_unit_test(test_only_what_is_kept_is_open_in_a_worker),
        cmocka_unit_test(test_each_stream_is_its_file_whatever_the_guard_has_open),
        cmocka_unit_test(test_a_worker_leads_a_session_and_dies_with_its_guard),
        cmocka_unit_test(test_what_stands_in_the_way_of_a_program_is_told),
        cmocka_unit_test(test_a_worker_that_hangs_before_its_exec_does_not_hang_the_guard),
        cmocka_unit_test(test_children_that_fail_leave_the_errno_of_their_parent_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
