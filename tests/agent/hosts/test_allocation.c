#include "agent/hosts/allocation.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct arena arena;
static struct allocation al;
static struct err err;

static const char *const variables[] = {
    "SLURM_JOB_ID",         "SLURM_STEP_ID",        "SLURM_STEP_NODELIST",
    "SLURM_STEP_NUM_NODES", "SLURM_NODEID",         "SLURM_STEP_TASKS_PER_NODE",
    "SLURM_HET_SIZE",       "JOB_COMPLETION_INDEX", NULL};

static int clear(void **state) {
    (void)state;
    for (const char *const *v = variables; *v; v++)
        unsetenv(*v);
    arena_fini(&arena);
    return 0;
}

/* As srun sets them for the third of four hosts. */
static int step(void **state) {
    clear(state);
    setenv("SLURM_JOB_ID", "4711", 1);
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_STEP_NODELIST", "n[1-3],m05", 1);
    setenv("SLURM_STEP_NUM_NODES", "4", 1);
    setenv("SLURM_NODEID", "2", 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", "1(x4)", 1);
    return 0;
}

static void refused_with(const char *variable, const char *value, const char *words) {
    void *none = NULL;
    step(&none);
    if (value)
        setenv(variable, value, 1);
    else
        unsetenv(variable);
    memset(&err, 0, sizeof(err));
    assert_true(allocation_of_step(&arena, &al, &err) < 0);
    if (!strstr(err.msg, words))
        fail_msg("\"%s\" is not in \"%s\"", words, err.msg);
}

static void test_a_step_meets_on_its_first_host(void **state) {
    (void)state;
    assert_int_equal(allocation_of_step(&arena, &al, &err), 1);
    assert_string_equal(al.first, "n1");
    assert_string_equal(al.run_id, "4711");
    assert_int_equal(al.nodes, 4);
    assert_int_equal(al.node, 2);
    assert_int_equal(al.port, 24711);
}

static void test_two_steps_of_a_job_are_two_runs_at_two_ports(void **state) {
    (void)state;
    setenv("SLURM_STEP_ID", "3", 1);
    assert_int_equal(allocation_of_step(&arena, &al, &err), 1);
    assert_string_equal(al.run_id, "4711.3");
    assert_true(al.port != 24711 && al.port >= 20000 && al.port < 30000);
}

static void test_a_batch_script_is_no_step(void **state) {
    (void)state;
    unsetenv("SLURM_STEP_NODELIST");
    assert_int_equal(allocation_of_step(&arena, &al, &err), 0);
    setenv("SLURM_STEP_NODELIST", "n1", 1);
    unsetenv("SLURM_JOB_ID");
    assert_int_equal(allocation_of_step(&arena, &al, &err), 0);
}

static void test_variables_that_make_no_sense_are_named(void **state) {
    (void)state;
    refused_with("SLURM_JOB_ID", "x", "SLURM_JOB_ID=x");
    refused_with("SLURM_STEP_ID", NULL, "SLURM_STEP_ID=");
    refused_with("SLURM_STEP_NODELIST", "n[1-", "SLURM_STEP_NODELIST=n[1-");
    refused_with("SLURM_STEP_NUM_NODES", "3", "do not agree");
    refused_with("SLURM_NODEID", "4", "do not agree");
    refused_with("SLURM_NODEID", "-1", "SLURM_NODEID=-1");
    refused_with("SLURM_STEP_TASKS_PER_NODE", "2(x4)", "--ntasks-per-node=1");
    refused_with("SLURM_STEP_TASKS_PER_NODE", "1(x3),12", "--ntasks-per-node=1");
    refused_with("SLURM_HET_SIZE", "2", "heterogeneous");
}

static void test_a_task_on_each_host_is_known_however_it_is_written(void **state) {
    (void)state;
    setenv("SLURM_STEP_TASKS_PER_NODE", "1,1(x2),1", 1);
    assert_int_equal(allocation_of_step(&arena, &al, &err), 1);
    unsetenv("SLURM_STEP_TASKS_PER_NODE");
    assert_int_equal(allocation_of_step(&arena, &al, &err), 1);
}

static void test_pods_of_an_indexed_job_meet_at_the_first(void **state) {
    (void)state;
    assert_int_equal(allocation_of_pod("train-7.workers", &arena, &al, &err), 0);
    setenv("JOB_COMPLETION_INDEX", "7", 1);
    assert_int_equal(
        allocation_of_pod("my-train-7.workers.ns.svc.cluster.local", &arena, &al, &err), 1);
    assert_string_equal(al.first, "my-train-0.workers.ns.svc.cluster.local");
    assert_string_equal(al.run_id, "my-train");
    assert_int_equal(al.node, 7);
    assert_int_equal(al.nodes, 0);
    assert_int_equal(al.port, 29400);
}

static void test_a_pod_without_a_service_is_told_what_it_lacks(void **state) {
    static const char *const names[] = {NULL, "train-7", "train-17.workers", "-7.workers",
                                        "train.workers"};
    (void)state;
    setenv("JOB_COMPLETION_INDEX", "7", 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        memset(&err, 0, sizeof(err));
        assert_true(allocation_of_pod(names[i], &arena, &al, &err) < 0);
        assert_non_null(strstr(err.msg, "headless service"));
    }
    setenv("JOB_COMPLETION_INDEX", "seven", 1);
    assert_true(allocation_of_pod("train-7.workers", &arena, &al, &err) < 0);
    assert_non_null(strstr(err.msg, "JOB_COMPLETION_INDEX=seven"));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_step_meets_on_its_first_host, step, clear),
        cmocka_unit_test_setup_teardown(test_two_steps_of_a_job_are_two_runs_at_two_ports, step,
                                        clear),
        cmocka_unit_test_setup_teardown(test_a_batch_script_is_no_step, step, clear),
        cmocka_unit_test_teardown(test_variables_that_make_no_sense_are_named, clear),
        cmocka_unit_test_setup_teardown(test_a_task_on_each_host_is_known_however_it_is_written,
                                        step, clear),
        cmocka_unit_test_teardown(test_pods_of_an_indexed_job_meet_at_the_first, clear),
        cmocka_unit_test_teardown(test_a_pod_without_a_service_is_told_what_it_lacks, clear),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
