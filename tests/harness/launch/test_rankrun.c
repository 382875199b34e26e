#include "harness/launch/launchers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const struct pair conf[] = {{.key = "profile", .value = "fast"},
                                   {.key = "join_timeout", .value = "10s"}};
static const char *const run[] = {"ranktrain", "--steps=40", NULL};
static const char *const script[] = {"train.py", "--lr=1", NULL};
static const char *const role[] = {"--role", "trainer", NULL};

static char *joined(const char *const *argv) {
    static struct buf text;
    buf_clear(&text);
    for (; *argv; argv++)
        buf_printf(&text, "%s ", *argv);
    return text.data;
}

static struct scenario scenario_of(size_t conf_n) {
    return (struct scenario){.name = "tour",
                             .job = {.min_nodes = 2,
                                     .max_nodes = 3,
                                     .workers_per_node = 2,
                                     .max_restarts = 1,
                                     .launcher = "rankrun",
                                     .rdzv_conf = conf,
                                     .rdzv_conf_n = conf_n}};
}

static void test_an_agent_of_many_meets_the_others_at_the_store(void **state) {
    (void)state;
    struct arena a = {0};
    struct scenario s = scenario_of(2);
    struct plan p = {.scenario = &s, .endpoint = "store:29400", .backend = "embedded"};
    struct plan_node n = {.name = "n1"};
    struct launch l = {.plan = &p, .node = &n, .bin = "/bin", .run = run};
    assert_string_equal(joined(launcher_of(&p)->agent_argv(&a, &l)),
                        "/bin/rankrun --nnodes 2:3 --rdzv_id tour --rdzv_backend embedded "
                        "--rdzv_endpoint store:29400 --nproc_per_node 2 --max_restarts 1 "
                        "--local_addr n1 --rdzv_conf profile=fast,join_timeout=10s --no_python "
                        "/bin/rankprobe ranktrain --steps=40 ");
    assert_null(launcher_of(&p)->agent_env(&a, &l));
    arena_fini(&a);
}

static void test_a_single_node_needs_no_store(void **state) {
    (void)state;
    struct arena a = {0};
    struct scenario s = scenario_of(0);
    struct plan p = {.scenario = &s};
    struct plan_node n = {.name = "n0"};
    struct launch l = {.plan = &p, .node = &n, .bin = "/bin", .run = run};
    assert_string_equal(joined(launcher_rankrun.agent_argv(&a, &l)),
                        "/bin/rankrun --standalone --nproc_per_node 2 --max_restarts 1 "
                        "--no_python /bin/rankprobe ranktrain --steps=40 ");
    arena_fini(&a);
}

static void test_a_script_is_left_to_python_behind_the_probe(void **state) {
    (void)state;
    struct arena a = {0};
    struct scenario s = scenario_of(0);
    struct plan p = {.scenario = &s};
    struct plan_node n = {.name = "n0"};
    struct launch l = {.plan = &p, .node = &n, .bin = "/bin", .run = script, .args = role};
    assert_string_equal(joined(launcher_rankrun.agent_argv(&a, &l)),
                        "/bin/rankrun --standalone --nproc_per_node 2 --max_restarts 1 "
                        "--role trainer train.py --lr=1 ");
    assert_string_equal(joined(launcher_rankrun.agent_env(&a, &l)),
                        "PYTHON_EXEC=/bin/rankprobe RANKQUAKE_PYTHON=python3 ");
    arena_fini(&a);
}

static void test_the_store_listens_to_all(void **state) {
    (void)state;
    struct arena a = {0};
    struct scenario s = scenario_of(0);
    struct plan p = {.scenario = &s, .backend = "embedded"};
    struct plan_node n = {.name = "store", .is_store = true};
    struct launch l = {.plan = &p, .node = &n, .bin = "/bin", .disk = "/disk"};
    assert_string_equal(joined(store_argv(&a, &l)),
                        "/bin/rankrun store --host 0.0.0.0 --port 29400 ");
    assert_string_equal(store_ready_line(&p), "store: listening on ");
    arena_fini(&a);
}

static void test_members_of_etcd_know_each_other(void **state) {
    (void)state;
    struct arena a = {0};
    struct scenario s = scenario_of(0);
    s.cluster.store = STORE_ETCD_3;
    struct plan_node nodes[] = {{.name = "n0"},
                                {.name = "store-0", .addr = "198.18.0.2", .is_store = true},
                                {.name = "store-1", .addr = "198.18.0.3", .is_store = true}};
    struct plan p = {.scenario = &s, .backend = "etcd-v2", .nodes = nodes, .nodes_n = 3};
    struct launch l = {.plan = &p, .node = &nodes[2], .bin = "/bin", .disk = "/disk"};
    assert_string_equal(
        joined(store_argv(&a, &l)),
        "etcd --name store-1 --data-dir /disk/etcd --listen-client-urls "
        "http://198.18.0.3:29400,http://127.0.0.1:29400 --advertise-client-urls "
        "http://store-1:29400 --listen-peer-urls http://198.18.0.3:29401 "
        "--initial-advertise-peer-urls http://store-1:29401 --initial-cluster "
        "store-0=http://store-0:29401,store-1=http://store-1:29401 --logger zap --enable-v2 ");
    assert_non_null(store_ready_line(&p));
    arena_fini(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_agent_of_many_meets_the_others_at_the_store),
        cmocka_unit_test(test_a_single_node_needs_no_store),
        cmocka_unit_test(test_a_script_is_left_to_python_behind_the_probe),
        cmocka_unit_test(test_the_store_listens_to_all),
        cmocka_unit_test(test_members_of_etcd_know_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
