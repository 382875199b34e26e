#include "agent/core/timing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MS 1000000LL

static void test_the_profiles_hold_the_rules(void **state) {
    (void)state;
    struct timing t;
    assert_true(timing_profile("default", &t));
    assert_int_equal(timing_check(&t, NULL), 0);
    assert_int_equal(t.suspect_ns, 6000 * MS);
    assert_true(timing_profile("fast", &t));
    assert_int_equal(timing_check(&t, NULL), 0);
    assert_false(timing_profile("slow", &t));
}

static void test_each_rule_is_refused_by_name(void **state) {
    (void)state;
    struct err err = {0};
    struct timing t = {150 * MS, 600 * MS, 700 * MS, 800 * MS};
    assert_int_not_equal(timing_check(&t, &err), 0);
    assert_non_null(strstr(err.msg, "suspect (800 ms)"));
    t = (struct timing){150 * MS, 600 * MS, 640 * MS, 800 * MS};
    assert_int_not_equal(timing_check(&t, &err), 0);
    assert_non_null(strstr(err.msg, "hard (640 ms)"));
    t = (struct timing){250 * MS, 600 * MS, 680 * MS, 800 * MS};
    assert_int_not_equal(timing_check(&t, &err), 0);
    assert_non_null(strstr(err.msg, "fence (600 ms)"));
    t.hb_ns = 0;
    assert_int_not_equal(timing_check(&t, &err), 0);
    timing_stretch(&t, 10000, TIMING_EMBEDDED); /* nor is it stretched */
    assert_int_equal(t.hb_ns, 0);
}

static void test_many_nodes_stretch_all_four_alike(void **state) {
    (void)state;
    struct timing t;
    timing_profile("fast", &t);
    timing_stretch(&t, 300, TIMING_EMBEDDED);
    assert_int_equal(t.hb_ns, 150 * MS);
    timing_stretch(&t, 600, TIMING_EMBEDDED);
    assert_int_equal(t.hb_ns, 300 * MS);
    assert_int_equal(t.fence_ns, 1200 * MS);
    assert_int_equal(t.suspect_ns, 1600 * MS);
    assert_int_equal(timing_check(&t, NULL), 0);
    timing_profile("default", &t);
    timing_stretch(&t, 250, TIMING_ETCD);
    assert_int_equal(t.hb_ns, 500 * MS);
    timing_stretch(&t, 1000, TIMING_ETCD);
    assert_int_equal(t.hb_ns, 2000 * MS);
    assert_int_equal(timing_check(&t, NULL), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_profiles_hold_the_rules),
        cmocka_unit_test(test_each_rule_is_refused_by_name),
        cmocka_unit_test(test_many_nodes_stretch_all_four_alike),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
