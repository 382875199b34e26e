/* Plays the scenes of spawn_cluster and spawn_orphans, as root and as an ordinary user where it is
 * root who asks, else as the one who asks. */
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/namespace.h"
#include "base/sys/process.h"
#include "faults/need.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ORDINARY = 1000 };

static const int64_t patience_ns = 100000000000;

static int become_ordinary(void *arg) {
    (void)arg;
    if (setgroups(0, NULL) != 0 || setresgid(ORDINARY, ORDINARY, ORDINARY) != 0 ||
        setresuid(ORDINARY, ORDINARY, ORDINARY) != 0)
        return -errno;
    return 0;
}

static void play(const char *spawnee, const char *scene, bool ordinary, const char *how) {
    char program[PATH_MAX], dir[PATH_MAX];
    struct process p;
    struct err err = {0};
    int status;
    const char *temporary = getenv("TMPDIR");
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 32);
    assert_true(n > 0);
    program[n] = 0;
    strcpy(strrchr(program, '/') + 1, spawnee);
    snprintf(dir, sizeof(dir), "%s/cluster_XXXXXX", temporary ? temporary : "/tmp");
    assert_int_equal(file_make_temp_dir(dir, &err), 0);
    if (ordinary && chown(dir, ORDINARY, ORDINARY) != 0)
        fail();
    /* A folder that the ordinary user may not enter is no place to run from. */
    if (ordinary && temporary && chmod(temporary, 0755) != 0)
        fail();
    struct process_spawn s = {.argv = (const char *[]){program, scene, dir, how, NULL},
                              .in_child = ordinary ? become_ordinary : NULL};
    if (process_spawn(&s, &p, &err) != 0)
        fail_msg("%s", err.msg);
    assert_int_equal(process_reap(&p, patience_ns, &status), 0);
    process_close(&p);
    file_remove_tree(dir, NULL);
    if (status)
        fail_msg("%s %s ended with status 0x%x%s", spawnee, scene, (unsigned)status,
                 ordinary ? " as an ordinary user" : "");
}

static bool reachable_by_others(void) {
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (n <= 0)
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        path[n] = 0;
        _exit(become_ordinary(NULL) == 0 && access(path, X_OK) == 0 ? 0 : 1);
    }
    int status = 1;
    waitpid(pid, &status, 0);
    return status == 0;
}

static bool possible, as_other;

static int look(void **state) {
    struct err err;
    (void)state;
    possible = namespace_check(&err) == 0;
    as_other = geteuid() == 0 && reachable_by_others();
    if (!possible)
        print_message("%s\n", err.msg);
    return 0;
}

static void play_as_both(const char *spawnee, const char *scene) {
    if (!possible)
        skip();
    play(spawnee, scene, false, NULL);
    if (as_other)
        play(spawnee, scene, true, NULL);
}

/* Nodes as processes need no namespaces, and no root; what cuts them needs to be let. */
static void play_as_processes(const char *spawnee, const char *scene) {
    struct err err;
    if (fault_needs_check(FAULT_NEEDS_SILENCE, &err) != 0) {
        print_message("%s\n", err.msg);
        skip();
    }
    play(spawnee, scene, as_other, "processes");
}

static void test_a_cluster_that_cannot_be_made_leaves_nothing(void **state) {
    (void)state;
    play_as_both("spawn_cluster", "spoiled");
}

static void test_without_namespaces_the_peer_of_a_killed_node_is_told(void **state) {
    (void)state;
    play_as_processes("spawn_cluster", "kill");
}

static void test_without_namespaces_the_peer_of_a_node_without_power_hears_nothing(void **state) {
    (void)state;
    play_as_processes("spawn_cluster", "poweroff");
}

static void test_without_namespaces_a_partition_parts_whom_it_names(void **state) {
    (void)state;
    play_as_processes("spawn_cluster", "partition");
}

static void test_without_namespaces_a_new_connection_is_cut_as_well(void **state) {
    (void)state;
    play_as_processes("spawn_cluster", "newcomers");
}

/* Of a node that the dead man's end has taken nothing is left, in whatever isolation. */
static void test_a_node_ends_by_itself_when_the_harness_is_silent_for_a_whole_run(void **state) {
    (void)state;
    if (possible)
        play("spawn_cluster", "silence", false, NULL);
    play_as_processes("spawn_cluster", "silence");
}

static void test_without_namespaces_a_dead_node_starts_again(void **state) {
    (void)state;
    play_as_processes("spawn_cluster", "again");
}

static void test_without_namespaces_faults_on_processes_run_in_the_node(void **state) {
    (void)state;
    play_as_processes("spawn_cluster", "faults");
}

static void test_without_namespaces_leftovers_are_the_nodes_own(void **state) {
    (void)state;
    play_as_processes("spawn_cluster", "leftovers");
    play_as_processes("spawn_cluster", "gone");
}

static void test_without_namespaces_a_killed_harness_leaves_nothing(void **state) {
    (void)state;
    play_as_processes("spawn_orphans", "late");
}

static void test_nodes_talk_over_the_wire_and_bytes_are_counted(void **state) {
    (void)state;
    play_as_both("spawn_cluster", "echo");
}

static void test_a_wire_with_packet_rings_loses_nothing_either(void **state) {
    (void)state;
    play_as_both("spawn_cluster", "ring");
}

static void test_store_and_bootstrap_traffic_is_no_data(void **state) {
    (void)state;
    play_as_both("spawn_cluster", "planes");
}

static void test_a_partition_parts_whom_it_names_until_it_is_undone(void **state) {
    (void)state;
    play_as_both("spawn_cluster", "partition");
}

static void test_a_node_is_a_machine_with_the_callers_files(void **state) {
    (void)state;
    play_as_both("spawn_cluster", "view");
}

static void test_the_peer_of_a_killed_node_is_told(void **state) {
    (void)state;
    play_as_both("spawn_cluster", "kill");
}

static void test_the_peer_of_a_node_without_power_hears_nothing(void **state) {
    (void)state;
    play_as_both("spawn_cluster", "poweroff");
}

static void test_a_dead_node_starts_again_at_the_same_address(void **state) {
    (void)state;
    play_as_both("spawn_cluster", "again");
}

static void test_faults_on_processes_run_in_the_node(void **state) {
    (void)state;
    play_as_both("spawn_cluster", "faults");
}

static void test_what_a_program_leaves_behind_is_counted(void **state) {
    (void)state;
    play_as_both("spawn_cluster", "leftovers");
}

static void test_a_program_that_is_missing_is_named(void **state) {
    (void)state;
    play_as_both("spawn_cluster", "missing");
}

static void test_a_harness_killed_while_it_builds_leaves_nothing(void **state) {
    (void)state;
    play_as_both("spawn_orphans", "early");
}

static void test_a_harness_killed_while_nodes_talk_leaves_nothing(void **state) {
    (void)state;
    play_as_both("spawn_orphans", "late");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_talk_over_the_wire_and_bytes_are_counted),
        cmocka_unit_test(test_a_wire_with_packet_rings_loses_nothing_either),
        cmocka_unit_test(test_store_and_bootstrap_traffic_is_no_data),
        cmocka_unit_test(test_a_partition_parts_whom_it_names_until_it_is_undone),
        cmocka_unit_test(test_a_node_is_a_machine_with_the_callers_files),
        cmocka_unit_test(test_the_peer_of_a_killed_node_is_told),
        cmocka_unit_test(test_the_peer_of_a_node_without_power_hears_nothing),
        cmocka_unit_test(test_a_dead_node_starts_again_at_the_same_address),
        cmocka_unit_test(test_faults_on_processes_run_in_the_node),
        cmocka_unit_test(test_what_a_program_leaves_behind_is_counted),
        cmocka_unit_test(test_a_program_that_is_missing_is_named),
        cmocka_unit_test(test_a_harness_killed_while_it_builds_leaves_nothing),
        cmocka_unit_test(test_a_harness_killed_while_nodes_talk_leaves_nothing),
        cmocka_unit_test(test_a_cluster_that_cannot_be_made_leaves_nothing),
        cmocka_unit_test(test_without_namespaces_the_peer_of_a_killed_node_is_told),
        cmocka_unit_test(test_without_namespaces_the_peer_of_a_node_without_power_hears_nothing),
        cmocka_unit_test(test_without_namespaces_a_partition_parts_whom_it_names),
        cmocka_unit_test(test_without_namespaces_a_new_connection_is_cut_as_well),
        cmocka_unit_test(test_a_node_ends_by_itself_when_the_harness_is_silent_for_a_whole_run),
        cmocka_unit_test(test_without_namespaces_a_dead_node_starts_again),
        cmocka_unit_test(test_without_namespaces_faults_on_processes_run_in_the_node),
        cmocka_unit_test(test_without_namespaces_leftovers_are_the_nodes_own),
        cmocka_unit_test(test_without_namespaces_a_killed_harness_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, look, NULL);
}
