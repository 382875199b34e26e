#include "agent/agent_config.h"
#include "agent/options.h"
#include "base/sys/clock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000000LL
#define S  1000000000LL

static struct arena arena;

static struct options base(void) {
    return (struct options){
        .backend = BACKEND_IN_PROCESS,
        .nodes_min = 1,
        .nodes_max = 1,
        .workers_per_node = 2,
        .run_id = "r",
        .rdzv = {.profile = "default",
                 .hb_ms = -1,
                 .fence_ms = -1,
                 .hard_ms = -1,
                 .suspect_ms = -1,
                 .join_timeout_ms = -1,
                 .last_call_timeout_ms = -1,
                 .admit_ms = -1,
                 .stop_timeout_ms = -1,
                 .give_up_ms = -1},
        .max_restarts = 3,
        .role = "default",
        .shutdown_timeout_ms = 30000,
    };
}

static int tear_down(void **state) {
    (void)state;
    arena_fini(&arena);
    return 0;
}

static void test_a_job_alone_is_reached_on_loopback_and_needs_no_network(void **state) {
    (void)state;
    struct options o = base();
    struct rendezvous_config c;
    struct err err = {0};
    assert_int_equal(agent_config_make(&o, &arena, &c, &err), 0);
    assert_string_equal(c.addr, "127.0.0.1");
    assert_string_equal(c.attempt, "");
    assert_int_equal(c.slots, 2);
    assert_int_equal(c.shutdown_grace_ns, 30 * S);
}

static void test_a_profile_decides_what_is_not_given(void **state) {
    (void)state;
    struct options o = base();
    struct rendezvous_config c;
    o.backend = BACKEND_EMBEDDED;
    o.local_addr = "127.0.0.1";
    assert_int_equal(agent_config_make(&o, &arena, &c, NULL), 0);
    assert_int_equal(c.timing.hb_ns, 500 * MS);
    assert_int_equal(c.timing.suspect_ns, 6000 * MS);
    assert_int_equal(c.last_call_ns, 30 * S);
    assert_int_equal(c.admit_ns, S);
    o.rdzv.profile = "fast";
    o.rdzv.admit_ms = 7;
    o.rdzv.stop_timeout_ms = 0;
    assert_int_equal(agent_config_make(&o, &arena, &c, NULL), 0);
    assert_int_equal(c.timing.suspect_ns, 800 * MS);
    assert_int_equal(c.last_call_ns, 2 * S);
    assert_int_equal(c.admit_ns, 7 * MS);
    assert_int_equal(c.stop_timeout_ns, 0);
}

static void
test_an_agent_alone_with_its_store_beats_seldom_unless_it_is_told_how_often(void **state) {
    (void)state;
    struct options o = base();
    struct rendezvous_config c;
    assert_int_equal(agent_config_make(&o, &arena, &c, NULL), 0);
    assert_int_equal(c.timing.hb_ns, 5 * S);
    assert_int_equal(c.timing.suspect_ns, 60 * S);
    o.rdzv.fence_ms = 2000;
    assert_int_equal(agent_config_make(&o, &arena, &c, NULL), 0);
    assert_int_equal(c.timing.hb_ns, 500 * MS);
    assert_int_equal(c.timing.fence_ns, 2 * S);
}

static void test_the_count_of_restarts_and_the_free_rounds_are_the_options(void **state) {
    (void)state;
    struct options o = base();
    struct rendezvous_config c;
    assert_int_equal(agent_config_make(&o, &arena, &c, NULL), 0);
    assert_int_equal(c.restart_mode, RESTART_COUNT_JOB);
    assert_int_equal(c.max_free_rounds, 0);
    o.restarts_by_node = true;
    o.rdzv.max_free_rounds = 4;
    assert_int_equal(agent_config_make(&o, &arena, &c, NULL), 0);
    assert_int_equal(c.restart_mode, RESTART_COUNT_NODE);
    assert_int_equal(c.max_free_rounds, 4);
}

static void test_timings_that_break_the_rules_are_refused(void **state) {
    (void)state;
    struct options o = base();
    struct rendezvous_config c = {.min = 42};
    struct err err = {0};
    o.rdzv.hard_ms = 5999; /* as long as suspect: silence would prove nothing */
    assert_int_equal(agent_config_make(&o, &arena, &c, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "--rdzv-conf"));
    assert_int_equal(c.min, 42);
    o = base();
    o.rdzv.profile = "slow";
    assert_int_equal(agent_config_make(&o, &arena, &c, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "slow"));
}

static void test_agents_of_one_host_are_told_apart_by_their_addresses(void **state) {
    (void)state;
    struct options o = base();
    struct rendezvous_config c;
    o.local_addr = "127.0.0.7";
    assert_int_equal(agent_config_make(&o, &arena, &c, NULL), 0);
    assert_string_equal(c.node, "127.0.0.7");
    assert_string_equal(c.addr, "127.0.0.7");
}

static void test_an_endpoint_nobody_knows_is_named(void **state) {
    (void)state;
    struct options o = base();
    struct rendezvous_config c;
    struct err err = {0};
    o.backend = BACKEND_EMBEDDED;
    o.nodes_max = 2;
    o.endpoint_host = "no-such.invalid";
    o.endpoint_port = 29400;
    assert_int_equal(agent_config_make(&o, &arena, &c, &err), -EHOSTUNREACH);
    assert_non_null(strstr(err.msg, "no-such.invalid"));
}

/* No network is asked: no name has empty parts. */
static void test_an_endpoint_that_is_not_known_is_tried_until_the_join_timeout(void **state) {
    (void)state;
    struct err err = {0};
    struct rendezvous_config c;
    struct options o = base();
    struct loop *l = loop_new(&err);
    o.backend = BACKEND_EMBEDDED;
    o.endpoint_host = "a..name..that..cannot..be";
    o.rdzv.join_timeout_ms = 100;
    int64_t begun_ns = clock_monotonic_ns();
    assert_int_equal(agent_config_await(l, &o, &arena, &c, &err), -EHOSTUNREACH);
    assert_true(clock_monotonic_ns() - begun_ns >= 100 * MS);
    assert_non_null(strstr(err.msg, "that..cannot"));
    loop_free(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job_alone_is_reached_on_loopback_and_needs_no_network),
        cmocka_unit_test(test_a_profile_decides_what_is_not_given),
        cmocka_unit_test(
            test_an_agent_alone_with_its_store_beats_seldom_unless_it_is_told_how_often),
        cmocka_unit_test(test_the_count_of_restarts_and_the_free_rounds_are_the_options),
        cmocka_unit_test(test_timings_that_break_the_rules_are_refused),
        cmocka_unit_test(test_agents_of_one_host_are_told_apart_by_their_addresses),
        cmocka_unit_test(test_an_endpoint_nobody_knows_is_named),
        cmocka_unit_test(test_an_endpoint_that_is_not_known_is_tried_until_the_join_timeout),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
