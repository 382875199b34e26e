#include "tests/agent/options_fixture.h"

#include <stdio.h>
#include <unistd.h>

/* As srun sets them on the second of three hosts. */
static int step(void **state) {
    (void)state;
    setenv("SLURM_JOB_ID", "4711", 1);
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_STEP_NODELIST", "n[1-3]", 1);
    setenv("SLURM_STEP_NUM_NODES", "3", 1);
    setenv("SLURM_NODEID", "1", 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", "1(x3)", 1);
    return 0;
}

static int gone(void **state) {
    static const char *const variables[] = {"SLURM_STEP_ID",
                                            "SLURM_STEP_NODELIST",
                                            "SLURM_STEP_NUM_NODES",
                                            "SLURM_NODEID",
                                            "SLURM_STEP_TASKS_PER_NODE",
                                            "SLURM_CONF",
                                            "SLURM_JOB_PARTITION",
                                            "ENVIRONMENT",
                                            "JOB_COMPLETION_INDEX",
                                            "RANKRUN_OUTCOME"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
        unsetenv(variables[i]);
    return clear(state);
}

static bool is_told(const char *words) {
    for (const char *const *n = o.notices; *n; n++)
        if (strstr(*n, words))
            return true;
    return false;
}

static void test_under_srun_a_program_is_the_whole_command_line(void **state) {
    (void)state;
    TAKEN("rankrun train.py");
    assert_int_equal(o.backend, BACKEND_EMBEDDED);
    assert_int_equal(o.nodes_min, 3);
    assert_int_equal(o.nodes_max, 3);
    assert_string_equal(o.endpoints, "n1:24711");
    assert_string_equal(o.run_id, "4711");
    assert_string_equal(o.rdzv.attempt, "slurm-4711-0");
    assert_false(is_told("of Slurm"));
}

static void test_the_first_host_says_what_follows_from_slurm(void **state) {
    (void)state;
    setenv("SLURM_NODEID", "0", 1);
    TAKEN("rankrun train.py");
    assert_true(is_told("of Slurm: --nnodes=3 --rdzv-endpoint=n1:24711 --rdzv-id=4711"));
}

static void test_what_is_typed_goes_before_what_slurm_says(void **state) {
    (void)state;
    TAKEN("rankrun --nnodes 2:3 --rdzv-id mine train.py");
    assert_int_equal(o.nodes_min, 2);
    assert_string_equal(o.run_id, "mine");
    assert_string_equal(o.endpoints, "n1:24711");
    TAKEN("rankrun --rdzv-backend slurm --rdzv-endpoint other:1 train.py");
    assert_string_equal(o.endpoints, "other:1");
    assert_int_equal(o.nodes_min, 3);
    TAKEN("rankrun --nnodes 2 --rdzv-endpoint other:1 train.py");
    assert_string_equal(o.run_id, "none");
    TAKEN("rankrun --standalone train.py");
    assert_int_equal(o.backend, BACKEND_IN_PROCESS);
    TAKEN("rankrun --nnodes 1 train.py");
    assert_int_equal(o.backend, BACKEND_IN_PROCESS);
    TAKEN("rankrun --nnodes 2 --node-rank 1 --master-addr a train.py");
    assert_string_equal(o.endpoints, "a:29501");
}

static void test_one_host_is_a_job_of_its_own_unless_slurm_is_asked_for(void **state) {
    (void)state;
    setenv("SLURM_STEP_NODELIST", "n1", 1);
    setenv("SLURM_STEP_NUM_NODES", "1", 1);
    setenv("SLURM_NODEID", "0", 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", "1", 1);
    TAKEN("rankrun train.py");
    assert_int_equal(o.backend, BACKEND_IN_PROCESS);
    TAKEN("rankrun --rdzv-backend slurm train.py");
    assert_int_equal(o.backend, BACKEND_EMBEDDED);
    assert_int_equal(o.nodes_max, 1);
}

static void test_what_cannot_be_under_slurm_is_refused(void **state) {
    (void)state;
    REFUSED("rankrun --nnodes 4 train.py", "srun started this step on 3 hosts");
    REFUSED("rankrun --nnodes 4:8 train.py", "srun started this step on 3 hosts");
    REFUSED("rankrun --nnodes few train.py", "--nnodes few: must be");
    REFUSED("rankrun --rdzv-backend slurm --standalone train.py", "--standalone");
    REFUSED("rankrun --rdzv-backend slurm --node-rank 1 train.py", "--node-rank");
    REFUSED("rankrun status --rdzv-backend slurm --rdzv-endpoint a", "tells agents where to meet");
    REFUSED("rankrun --rdzv-backend slrum train.py", "did you mean slurm?");
    setenv("SLURM_STEP_NODELIST", "n[1-", 1);
    REFUSED("rankrun train.py", "a bracket is not closed");
    unsetenv("SLURM_STEP_NODELIST");
    REFUSED("rankrun --rdzv-backend slurm train.py", "start it by srun");
}

static void test_pods_are_counted_by_who_starts_them(void **state) {
    (void)state;
    REFUSED("rankrun --rdzv-backend kubernetes --nnodes 2 train.py", "JOB_COMPLETION_INDEX");
    setenv("JOB_COMPLETION_INDEX", "3", 1);
    TAKEN("rankrun train.py"); /* as many jobs as pods */
    assert_int_equal(o.backend, BACKEND_IN_PROCESS);
    REFUSED("rankrun --nnodes 2 train.py", "headless service"); /* this host is called otherwise */
    TAKEN("rankrun --nnodes 2 --rdzv-endpoint a train.py");
}

static void write_conf(const char *text) {
    FILE *f = fopen(getenv("SLURM_CONF"), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void test_settings_that_would_end_the_job_are_said_once(void **state) {
    (void)state;
    char path[256];
    snprintf(path, sizeof(path), "%s/slurm.conf", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    setenv("SLURM_CONF", path, 1);
    setenv("SLURM_JOB_PARTITION", "low", 1);
    setenv("SLURM_NODEID", "0", 1);
    write_conf("KillWait=5\nPartitionName=low GraceTime=20 PreemptMode=REQUEUE\n");
    TAKEN("rankrun train.py");
    assert_true(is_told("KillWait is 5 s"));
    assert_false(is_told("GraceTime"));
    setenv("ENVIRONMENT", "BATCH", 1);
    TAKEN("rankrun --shutdown-timeout 4 train.py");
    assert_false(is_told("KillWait"));
    assert_true(is_told("GraceTime=20 s"));
    write_conf("KillWait=30\nPartitionName=low GraceTime=20 PreemptMode=CANCEL\n");
    TAKEN("rankrun train.py");
    assert_false(is_told("KillWait") || is_told("GraceTime"));
    setenv("SLURM_NODEID", "1", 1);
    write_conf("KillWait=5\n");
    TAKEN("rankrun train.py");
    assert_false(is_told("KillWait"));
    unlink(path);
}

static void test_the_outcomes_file_is_not_handed_on(void **state) {
    (void)state;
    setenv("RANKRUN_OUTCOME", "/shared/file", 1);
    TAKEN("rankrun train.py");
    assert_string_equal(o.outcome_file, "/shared/file");
    assert_null(getenv("RANKRUN_OUTCOME"));
    TAKEN("rankrun outcome --dir /shared srun -N 3 rankrun train.py");
    assert_int_equal(o.verb, OPTIONS_OUTCOME);
    assert_string_equal(o.outcome_dir, "/shared");
    assert_string_equal(o.command[0], "srun");
    assert_string_equal(o.command[1], "-N");
    REFUSED("rankrun outcome", "no command to run");
    REFUSED("rankrun outcome --nnodes 2 srun", "unknown option --nnodes");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_under_srun_a_program_is_the_whole_command_line, step,
                                        gone),
        cmocka_unit_test_setup_teardown(test_the_first_host_says_what_follows_from_slurm, step,
                                        gone),
        cmocka_unit_test_setup_teardown(test_what_is_typed_goes_before_what_slurm_says, step, gone),
        cmocka_unit_test_setup_teardown(test_one_host_is_a_job_of_its_own_unless_slurm_is_asked_for,
                                        step, gone),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_under_slurm_is_refused, step, gone),
        cmocka_unit_test_teardown(test_pods_are_counted_by_who_starts_them, gone),
        cmocka_unit_test_setup_teardown(test_settings_that_would_end_the_job_are_said_once, step,
                                        gone),
        cmocka_unit_test_teardown(test_the_outcomes_file_is_not_handed_on, gone),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
