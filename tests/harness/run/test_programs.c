#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "harness/run/programs.h"

#include <stdlib.h>
#include <string.h>

static const struct places places = {
    .shared = "/s", .disk = "/d", .out = "/o", .seed = "7", .node = "n1"};

static const char *value_of(const char *const *env, const char *name) {
    size_t n = strlen(name);
    const char *found = NULL;
    for (; *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            assert_null(found), found = *env + n + 1; /* of two nobody knows which is taken */
    return found;
}

static void test_placeholders_are_filled_and_other_braces_stay(void **state) {
    (void)state;
    struct arena a = {0};
    assert_string_equal(
        placeholders_fill(&a, "{shared}/x {disk}{tmp} {out} {seed} {node} {other} ${X} {", &places),
        "/s/x /d/tmp /o 7 n1 {other} ${X} {");
    assert_string_equal(placeholders_fill(&a, "", &places), "");
    arena_fini(&a);
}

static void test_what_a_launcher_around_us_had_set_is_not_passed_on(void **state) {
    (void)state;
    struct arena a = {0};
    struct pair own = {.key = "JOB_DIR", .value = "{shared}/job"};
    struct job_spec job = {.env = &own, .env_n = 1};
    setenv("RANK", "3", 1);
    setenv("TORCHELASTIC_RESTART_COUNT", "2", 1);
    setenv("PET_NNODES", "9", 1);
    setenv("RANKQUAKE_EVENTS", "/nowhere", 1);
    setenv("RANKQUAKE_WAIT", "1", 1);
    setenv("NCCL_SOCKET_IFNAME", "ens5", 1);
    setenv("KEPT", "yes", 1);
    const char *const *env = programs_env(&a, &job, "/bin-of-ours", &places, NULL);
    assert_null(value_of(env, "RANK"));
    assert_null(value_of(env, "TORCHELASTIC_RESTART_COUNT"));
    assert_null(value_of(env, "PET_NNODES"));
    assert_null(value_of(env, "NCCL_SOCKET_IFNAME"));
    assert_string_equal(value_of(env, "RANKQUAKE_EVENTS"), CLUSTER_EVENTS_PATH);
    assert_null(value_of(env, "RANKQUAKE_WAIT"));
    assert_string_equal(value_of(env, "KEPT"), "yes");
    assert_string_equal(value_of(env, "JOB_DIR"), "/s/job");
    assert_true(str_starts(value_of(env, "PATH"), "/bin-of-ours:"));
    arena_fini(&a);
}

/* The scenario's words come before the host's, the launcher's own before both. */
static void test_of_each_variable_there_is_one(void **state) {
    (void)state;
    struct arena a = {0};
    struct pair own[] = {{.key = "PATH", .value = "{shared}/bin:/usr/bin"},
                         {.key = "MODE", .value = "scenario"},
                         {.key = "TMPDIR", .value = "/elsewhere"},
                         {.key = "PYTHON_EXEC", .value = "/venv/bin/python"}};
    struct job_spec job = {.env = own, .env_n = 4};
    const struct places on_a_node = {
        .shared = "/s", .tmp = "/node/tmp", .output = "/out", .wait_ns = 90000000001};
    const char *const launcher[] = {"PYTHON_EXEC=/bin-of-ours/rankprobe", NULL};
    setenv("MODE", "host", 1);
    setenv("MODE_2", "host", 1);
    setenv("PYTHON_EXEC", "/usr/bin/python3", 1);
    setenv("PYTHONUNBUFFERED", "", 1);
    const char *const *env = programs_env(&a, &job, "/bin-of-ours", &on_a_node, launcher);
    assert_string_equal(value_of(env, "PATH"), "/bin-of-ours:/s/bin:/usr/bin");
    assert_string_equal(value_of(env, "MODE"), "scenario");
    assert_string_equal(value_of(env, "MODE_2"), "host");
    assert_string_equal(value_of(env, "TMPDIR"), "/elsewhere");
    assert_string_equal(value_of(env, "XDG_RUNTIME_DIR"), "/node/tmp");
    assert_string_equal(value_of(env, "RANKQUAKE_WAIT"), "91"); /* whole seconds, none too few */
    assert_string_equal(value_of(env, "PYTHONUNBUFFERED"), "1");
    assert_string_equal(value_of(env, "PYTHON_EXEC"), "/bin-of-ours/rankprobe");
    arena_fini(&a);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_placeholders_are_filled_and_other_braces_stay),
        cmocka_unit_test(test_what_a_launcher_around_us_had_set_is_not_passed_on),
        cmocka_unit_test(test_of_each_variable_there_is_one),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
