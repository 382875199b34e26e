/* What the job on a node is told about its devices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "harness/run/programs.h"

#include <string.h>

static struct plan_device a = {.uuid = "GPU-a", .nodes = 1}, b = {.uuid = "GPU-b", .nodes = 1};
static const struct plan_device *const both[] = {&a, &b};

static const char *const caller[] = {"HOME=/h", "CUDA_VISIBLE_DEVICES=1,0", "NCCL_ALGO=Tree",
                                     "NCCL_NET=IB", NULL};

static int count_of(const char *const *env, const char *name, const char **ret_value) {
    size_t n = strlen(name);
    int found = 0;
    *ret_value = "(unset)";
    for (; *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=') {
            *ret_value = *env + n + 1;
            found++;
        }
    return found;
}

static const char *value_of(const char *const *env, const char *name) {
    const char *value;
    assert_true(count_of(env, name, &value) <= 1);
    return value;
}

struct set {
    struct scenario scenario;
    struct plan plan;
    struct plan_node node;
    struct arena arena;
};

static const char *const *env_of(struct set *s, size_t devices) {
    s->plan.scenario = &s->scenario;
    s->node.name = "n1";
    s->node.devices = both;
    s->node.devices_n = devices;
    return device_env(&s->arena, &s->plan, &s->node, "/run/logs/n1", caller);
}

static void test_without_devices_nothing_is_touched(void **state) {
    (void)state;
    struct set s = {0};
    assert_ptr_equal(env_of(&s, 0), caller);
    s.node.is_store = true;
    assert_ptr_equal(env_of(&s, 2), caller);
    arena_fini(&s.arena);
}

static void test_a_node_sees_its_own_devices_and_is_a_host_of_its_own(void **state) {
    (void)state;
    struct set s = {0};
    const char *const *env = env_of(&s, 2);
    assert_string_equal(value_of(env, "CUDA_VISIBLE_DEVICES"), "GPU-a,GPU-b");
    assert_string_equal(value_of(env, "NCCL_HOSTID"), "n1");
    assert_string_equal(value_of(env, "NCCL_SOCKET_IFNAME"), "=eth0");
    assert_string_equal(value_of(env, "NCCL_NET"), "Socket");
    assert_string_equal(value_of(env, "NCCL_DEBUG_FILE"), "/run/logs/n1/nccl.%p.log");
    assert_string_equal(value_of(env, "HOME"), "/h");
    s.plan.isolation = ISOLATION_PROCESSES;
    assert_string_equal(value_of(env_of(&s, 2), "NCCL_SOCKET_IFNAME"), "=lo");
    /* Inside a node with two of its own it is as fast as it would be on a real one. */
    assert_string_equal(value_of(env, "NCCL_P2P_DISABLE"), "(unset)");
    assert_string_equal(value_of(env, "NCCL_PROTO"), "(unset)");
    arena_fini(&s.arena);
}

static void test_a_device_that_nodes_share_is_used_with_few_turns(void **state) {
    (void)state;
    struct set s = {0};
    a.nodes = 2;
    const char *const *env = env_of(&s, 1);
    assert_string_equal(value_of(env, "CUDA_VISIBLE_DEVICES"), "GPU-a");
    assert_string_equal(value_of(env, "NCCL_P2P_DISABLE"), "1");
    assert_string_equal(value_of(env, "NCCL_PROTO"), "Simple");
    assert_string_equal(value_of(env, "NCCL_CUMEM_ENABLE"), "0");
    assert_string_equal(value_of(env, "NCCL_ALGO"), "Tree"); /* as the caller has it */
    a.nodes = 1;
    arena_fini(&s.arena);
}

static void test_nodes_that_are_processes_have_the_card_of_the_host(void **state) {
    (void)state;
    struct set s = {.plan.isolation = ISOLATION_PROCESSES};
    assert_string_equal(value_of(env_of(&s, 1), "NCCL_SOCKET_IFNAME"), "=lo");
    arena_fini(&s.arena);
}

static void test_what_the_scenario_sets_stands(void **state) {
    (void)state;
    struct set s = {0};
    struct pair own[] = {{.key = "CUDA_VISIBLE_DEVICES", .value = "1,0"},
                         {.key = "NCCL_NET", .value = "IB"}};
    s.scenario.job.env = own;
    s.scenario.job.env_n = 2;
    assert_string_equal(value_of(env_of(&s, 2), "CUDA_VISIBLE_DEVICES"), "1,0");
    assert_string_equal(value_of(env_of(&s, 2), "NCCL_NET"), "IB");
    arena_fini(&s.arena);
}

static void test_none_wanted_means_none_seen(void **state) {
    (void)state;
    struct set s = {.scenario.cluster.has_gpus = true};
    const char *const *env = env_of(&s, 0);
    assert_string_equal(value_of(env, "CUDA_VISIBLE_DEVICES"), "");
    assert_string_equal(value_of(env, "NCCL_HOSTID"), "(unset)");
    arena_fini(&s.arena);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_devices_nothing_is_touched),
        cmocka_unit_test(test_a_node_sees_its_own_devices_and_is_a_host_of_its_own),
        cmocka_unit_test(test_a_device_that_nodes_share_is_used_with_few_turns),
        cmocka_unit_test(test_nodes_that_are_processes_have_the_card_of_the_host),
        cmocka_unit_test(test_what_the_scenario_sets_stands),
        cmocka_unit_test(test_none_wanted_means_none_seen),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
