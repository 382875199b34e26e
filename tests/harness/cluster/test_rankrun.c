#include "harness/cluster/launcher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const struct pair conf[] = {{.key = "profile", .value = "fast"},
                                   {.key = "join_timeout", .value = "10s"}};
static const char *const run[] = {"ranktrain", "--steps=40", NULL};

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
                                     .rdzv_conf = conf,
                                     .rdzv_conf_n = conf_n}};
}

static void test_an_agent_of_many_meets_the_others_at_the_store(void **state) {
    (void)state;
    struct arena a = {0};
    struct scenario s = scenario_of(2);
    struct plan p = {.scenario = &s, .endpoint = "store:29400"};
    struct plan_node n = {.name = "n1"};
    assert_string_equal(joined(launcher_rankrun.agent_argv(&a, &p, &n, "/bin", run)),
                        "/bin/rankrun --nnodes 2:3 --rdzv-id tour --rdzv-backend embedded "
                        "--rdzv-endpoint store:29400 --local-addr n1 --nproc-per-node 2 "
                        "--max-restarts 1 --rdzv-conf profile=fast,join_timeout=10s --no-python "
                        "/bin/rankprobe ranktrain --steps=40 ");
    arena_fini(&a);
}

static void test_a_single_node_needs_no_store(void **state) {
    (void)state;
    struct arena a = {0};
    struct scenario s = scenario_of(0);
    struct plan p = {.scenario = &s};
    struct plan_node n = {.name = "n0"};
    assert_string_equal(joined(launcher_rankrun.agent_argv(&a, &p, &n, "/bin", run)),
                        "/bin/rankrun --standalone --nproc-per-node 2 --max-restarts 1 "
                        "--no-python /bin/rankprobe ranktrain --steps=40 ");
    arena_fini(&a);
}

static void test_the_store_listens_to_all(void **state) {
    (void)state;
    struct arena a = {0};
    struct plan p = {0};
    struct plan_node n = {.name = "store", .is_store = true};
    assert_string_equal(joined(launcher_rankrun.store_argv(&a, &p, &n, "/bin")),
                        "/bin/rankrun store --host 0.0.0.0 --port 29400 ");
    arena_fini(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_agent_of_many_meets_the_others_at_the_store),
        cmocka_unit_test(test_a_single_node_needs_no_store),
        cmocka_unit_test(test_the_store_listens_to_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
