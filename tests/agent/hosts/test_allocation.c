#include "agent/hosts/allocation.h"

#include "base/str.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
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

/* ---- in full ---- */

#define RANGE(name, value, max)                                                                    \
    name "=" value " in the environment: must be a number from 0 to " max
#define TASKS(value)                                                                               \
    "srun started several rankruns on a host (SLURM_STEP_TASKS_PER_NODE=" value                    \
    "): give srun --ntasks-per-node=1, and rankrun the workers of a host by --nproc-per-node"
#define DISAGREE(hosts, n, nodes, node)                                                            \
    "Slurm's variables do not agree: SLURM_STEP_NODELIST=" hosts " has " n                         \
    " hosts, SLURM_STEP_NUM_NODES is " nodes ", SLURM_NODEID is " node                             \
    "; were they set by hand? give --rdzv-endpoint, --rdzv-id and --nnodes"
#define HETEROGENEOUS(value)                                                                       \
    "a heterogeneous job of Slurm (SLURM_HET_SIZE=" value                                          \
    ") has no one list of hosts: give every rankrun the same --rdzv-endpoint, --rdzv-id and "      \
    "--nnodes"
#define BEYOND "4294967296"
#define LAST   "4294967295"

/* "4711.3 n1:28468 2/4", or what is said against it. */
static const char *told(int code) {
    static char text[256];
    if (code <= 0)
        return code ? err.msg : "no step";
    snprintf(text, sizeof(text), "%s %s:%d %d/%d", al.run_id, al.first, al.port, al.node, al.nodes);
    return text;
}

/* value NULL: it is not set. */
static void test_each_variable_of_a_step_is_read_as_a_whole(void **state) {
    (void)state;
    static const struct {
        const char *variable, *value, *told;
    } rows[] = {
        {"SLURM_JOB_ID", "0", "0 n1:20000 2/4"},
        {"SLURM_JOB_ID", "10000", "10000 n1:20000 2/4"},
        {"SLURM_JOB_ID", "19999", "19999 n1:29999 2/4"},
        {"SLURM_JOB_ID", LAST, LAST " n1:27295 2/4"},
        {"SLURM_JOB_ID", BEYOND, RANGE("SLURM_JOB_ID", BEYOND, LAST)},
        {"SLURM_JOB_ID", "", "no step"},
        {"SLURM_JOB_ID", NULL, "no step"},
        {"SLURM_STEP_ID", "1", "4711.1 n1:22630 2/4"},
        {"SLURM_STEP_ID", "2", "4711.2 n1:20549 2/4"},
        {"SLURM_STEP_ID", LAST, "4711." LAST " n1:23816 2/4"},
        {"SLURM_STEP_ID", BEYOND, RANGE("SLURM_STEP_ID", BEYOND, LAST)},
        {"SLURM_STEP_ID", "-1", RANGE("SLURM_STEP_ID", "-1", LAST)},
        {"SLURM_STEP_ID", NULL, RANGE("SLURM_STEP_ID", "", LAST)},
        {"SLURM_STEP_NODELIST", "", "no step"},
        {"SLURM_STEP_NODELIST", NULL, "no step"},
        {"SLURM_STEP_NODELIST", "x[7-10]", "4711 x7:24711 2/4"},
        {"SLURM_STEP_NODELIST", "n[1-5]", DISAGREE("n[1-5]", "5", "4", "2")},
        {"SLURM_STEP_NUM_NODES", "3", DISAGREE("n[1-3],m05", "4", "3", "2")},
        {"SLURM_STEP_NUM_NODES", "65536", DISAGREE("n[1-3],m05", "4", "65536", "2")},
        {"SLURM_STEP_NUM_NODES", "65537", RANGE("SLURM_STEP_NUM_NODES", "65537", "65536")},
        {"SLURM_STEP_NUM_NODES", NULL, RANGE("SLURM_STEP_NUM_NODES", "", "65536")},
        {"SLURM_NODEID", "0", "4711 n1:24711 0/4"},
        {"SLURM_NODEID", "3", "4711 n1:24711 3/4"},
        {"SLURM_NODEID", "4", DISAGREE("n[1-3],m05", "4", "4", "4")},
        {"SLURM_NODEID", "65537", RANGE("SLURM_NODEID", "65537", "65536")},
        {"SLURM_NODEID", NULL, RANGE("SLURM_NODEID", "", "65536")},
        {"SLURM_STEP_TASKS_PER_NODE", "1", "4711 n1:24711 2/4"},
        {"SLURM_STEP_TASKS_PER_NODE", "1,1,1,1", "4711 n1:24711 2/4"},
        {"SLURM_STEP_TASKS_PER_NODE", "1(x2),1(x2)", "4711 n1:24711 2/4"},
        {"SLURM_STEP_TASKS_PER_NODE", "11(x4)", TASKS("11(x4)")},
        {"SLURM_STEP_TASKS_PER_NODE", "2", TASKS("2")},
        {"SLURM_STEP_TASKS_PER_NODE", "1,1,2", TASKS("1,1,2")},
        {"SLURM_STEP_TASKS_PER_NODE", "1,10,1", TASKS("1,10,1")},
        {"SLURM_STEP_TASKS_PER_NODE", "", TASKS("")},
        {"SLURM_HET_SIZE", "1", "4711 n1:24711 2/4"},
        {"SLURM_HET_SIZE", "", HETEROGENEOUS("")},
        {"SLURM_HET_SIZE", "2", HETEROGENEOUS("2")},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        void *none = NULL;
        step(&none);
        memset(&err, 0, sizeof(err));
        if (rows[i].value)
            setenv(rows[i].variable, rows[i].value, 1);
        else
            unsetenv(rows[i].variable);
        int code = allocation_of_step(&arena, &al, &err);
        assert_string_equal(told(code), rows[i].told);
        assert_int_equal(code, strstr(rows[i].told, "no step")         ? 0
                               : strchr(rows[i].told, '/') && code > 0 ? 1
                                                                       : -EINVAL);
    }
}

#define NO_SERVICE(index, name)                                                                    \
    "JOB_COMPLETION_INDEX is " index ", but this pod's full name is '" name "', not JOB-" index    \
    ".SERVICE.NAMESPACE.svc...: give the pods of the job the subdomain of a headless service, or " \
    "rankrun --rdzv-endpoint and --rdzv-id"

static void test_each_name_of_a_pod_is_read_as_a_whole(void **state) {
    (void)state;
    static const struct {
        const char *index, *name, *told;
    } rows[] = {
        {"0", "a-0.w", "a a-0.w:29400 0/0"},
        {"12", "a-1-12.w.ns.svc", "a-1 a-1-0.w.ns.svc:29400 12/0"},
        {"65535", "a-65535.w", "a a-0.w:29400 65535/0"},
        {"65536", "a-65536.w", RANGE("JOB_COMPLETION_INDEX", "65536", "65535")},
        {"-1", "a--1.w", RANGE("JOB_COMPLETION_INDEX", "-1", "65535")},
        {"", "a-.w", RANGE("JOB_COMPLETION_INDEX", "", "65535")},
        {"2", "a-2", NO_SERVICE("2", "a-2")},
        {"2", NULL, NO_SERVICE("2", "")},
        {"2", "", NO_SERVICE("2", "")},
        {"2", "a-1.w", NO_SERVICE("2", "a-1.w")},
        {"2", "a-12.w", NO_SERVICE("2", "a-12.w")},
        {"2", "-2.w", NO_SERVICE("2", "-2.w")},
        {"2", "a.w-2", NO_SERVICE("2", "a.w-2")},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        memset(&err, 0, sizeof(err));
        setenv("JOB_COMPLETION_INDEX", rows[i].index, 1);
        assert_string_equal(told(allocation_of_pod(rows[i].name, &arena, &al, &err)), rows[i].told);
    }
    unsetenv("JOB_COMPLETION_INDEX");
    assert_string_equal(told(allocation_of_pod("a-0.w", &arena, &al, &err)), "no step");
}

/* What came before is not touched by what is refused. */
static void test_what_is_refused_changes_nothing(void **state) {
    (void)state;
    al = (struct allocation){"as", "it was", 1, 2, 3};
    setenv("SLURM_NODEID", "9", 1);
    assert_int_equal(allocation_of_step(&arena, &al, &err), -EINVAL);
    unsetenv("SLURM_JOB_ID");
    assert_int_equal(allocation_of_step(&arena, &al, &err), 0);
    setenv("JOB_COMPLETION_INDEX", "9", 1);
    assert_int_equal(allocation_of_pod("x", &arena, &al, &err), -EINVAL);
    assert_string_equal(told(1), "as it was:1 3/2");
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
        cmocka_unit_test_teardown(test_each_variable_of_a_step_is_read_as_a_whole, clear),
        cmocka_unit_test_teardown(test_each_name_of_a_pod_is_read_as_a_whole, clear),
        cmocka_unit_test_setup_teardown(test_what_is_refused_changes_nothing, step, clear),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
