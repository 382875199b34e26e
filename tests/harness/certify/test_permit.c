#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "faults/fault.h"
#include "harness/certify/permit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct permit permit;

static int tear_down(void **state) {
    (void)state;
    permit_fini(&permit);
    permit = (struct permit){0};
    return 0;
}

static int set_up(void **state) {
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    return 0;
}

/* ---- classes ---- */

static void test_every_fault_has_a_class(void **state) {
    (void)state;
    size_t by[REACHES_N] = {0};
    for (size_t i = 0; faults[i]; i++)
        by[fault_reach(faults[i]->name)]++;
    assert_true(by[REACH_JOB] && by[REACH_NODE] && by[REACH_SHARED]);
    assert_int_equal(fault_reach("worker-kill"), REACH_JOB);
    assert_int_equal(fault_reach("node-poweroff"), REACH_NODE);
    assert_int_equal(fault_reach("store-kill"), REACH_SHARED);
}

static enum fault_reach reach_of(const char *file) {
    struct diagnostics d = {0};
    struct scenario *s = plan_load(file, NULL, &d);
    struct plan *p = s ? plan_make(s, 1, &d) : NULL;
    assert_non_null(p);
    enum fault_reach reach = permit_reach(p);
    plan_free(p);
    scenario_free(s);
    diagnostics_fini(&d);
    return reach;
}

/* The same fault, on a node of workers and on that of the store. */
static void test_a_node_that_is_the_stores_is_shared(void **state) {
    (void)state;
    assert_int_equal(reach_of("scenarios/restart/worker-killed.yaml"), REACH_JOB);
    assert_int_equal(reach_of("scenarios/membership/node-killed.yaml"), REACH_NODE);
    assert_int_equal(reach_of("scenarios/store/store-restarts.yaml"), REACH_SHARED);
}

static size_t beyond(enum fault_reach most, const char *pattern) {
    TEXTS_FINI struct texts said = {0};
    struct diagnostics d = {0};
    struct scenario *s = plan_load("scenarios/network/partition-and-heal.yaml", NULL, &d);
    struct plan *p = s ? plan_make(s, 1, &d) : NULL;
    assert_non_null(p);
    assert_int_equal(permit_reach(p), REACH_NODE);
    permit.most = most;
    permit_check(&permit, p, &said);
    if (said.n)
        assert_non_null(strstr(said.v[0], pattern));
    plan_free(p);
    scenario_free(s);
    diagnostics_fini(&d);
    return said.n;
}

static void test_a_fault_that_reaches_further_is_named(void **state) {
    (void)state;
    assert_int_equal(beyond(REACH_JOB, "net-partition (cut) is of class node"), 1);
    assert_int_equal(beyond(REACH_NODE, ""), 0);
}

/* ---- deny lists ---- */

static bool allowed(const char *host, const char *user, const char *address) {
    const char *const addresses[] = {address, NULL}, *by = NULL;
    bool so = permit_allows_host(&permit, host, user, addresses, &by);
    assert_int_equal(so, by == NULL);
    return so;
}

static void test_hosts_users_and_addresses_are_denied(void **state) {
    (void)state;
    assert_int_equal(permit_deny(&permit, "host=db*", NULL), 0);
    assert_int_equal(permit_deny(&permit, "user=root", NULL), 0);
    assert_int_equal(permit_deny(&permit, "address=10.1.0.0/17", NULL), 0);
    assert_int_equal(permit_deny(&permit, "address=fd00::/8", NULL), 0);
    assert_true(allowed("gpu1", "ops", "10.2.0.1"));
    assert_false(allowed("db3", "ops", "10.2.0.1"));
    assert_false(allowed("gpu1", "root", "10.2.0.1"));
    assert_false(allowed("gpu1", "ops", "10.1.127.255"));
    assert_true(allowed("gpu1", "ops", "10.1.128.0"));
    assert_false(allowed("gpu1", "ops", "fd12::1"));
    assert_true(allowed("gpu1", "ops", "fe80::1"));
}

static void test_what_denies_nothing_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"db",
                                      "host=",
                                      "user=",
                                      "address=10.0.0",
                                      "address=10.0.0.0/33",
                                      "address=fd00::/129",
                                      "address=10.0.0.0/x",
                                      "Host=a",
                                      ""};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct err err = {0};
        assert_true(permit_deny(&permit, bad[i], &err) < 0);
        assert_non_null(strstr(err.msg, "host=NAME"));
    }
    assert_int_equal(permit.deny.n, 0);
}

/* ---- windows ---- */

/* 2026-11-29 is a Sunday. */
static int minutes(const char *when) {
    struct tm tm = {0};
    int64_t left;
    assert_non_null(strptime(when, "%Y-%m-%d %H:%M", &tm));
    bool open = permit_is_open(&permit, (int64_t)timegm(&tm) * 1000000000, &left);
    return open ? (int)(left / 60000000000) : -1;
}

static void test_a_window_may_lead_beyond_midnight(void **state) {
    (void)state;
    assert_int_equal(permit_window(&permit, "22:00-06:00", NULL), 0);
    assert_int_equal(minutes("2026-11-29 21:59"), -1);
    assert_int_equal(minutes("2026-11-29 22:00"), 480);
    assert_int_equal(minutes("2026-11-30 05:59"), 1);
    assert_int_equal(minutes("2026-11-30 06:00"), -1);
}

static void test_a_window_is_of_the_day_on_which_it_begins(void **state) {
    (void)state;
    assert_int_equal(permit_window(&permit, "Sat,Mon-Tue 23:00-01:00", NULL), 0);
    assert_int_equal(minutes("2026-11-28 23:30"), 90); /* Saturday */
    assert_int_equal(minutes("2026-11-29 00:30"), 30);
    assert_int_equal(minutes("2026-11-29 23:30"), -1); /* Sunday */
    assert_int_equal(minutes("2026-11-30 00:30"), -1);
    assert_int_equal(minutes("2026-12-02 00:59"), 1); /* Tuesday's */
}

static void test_the_longest_of_several_counts(void **state) {
    (void)state;
    int64_t left;
    assert_true(permit_is_open(&permit, 0, &left));
    assert_int_equal(left, -1);
    assert_int_equal(permit_window(&permit, "08:00-09:00", NULL), 0);
    assert_int_equal(permit_window(&permit, "Sun 00:00-24:00", NULL), 0);
    assert_int_equal(minutes("2026-11-29 08:30"), 930);
    assert_int_equal(minutes("2026-11-30 08:30"), 30);
}

static void test_what_is_no_window_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"22",
                                      "22:00",
                                      "22:00-",
                                      "24:00-01:00",
                                      "22:60-23:00",
                                      "22:00-24:01",
                                      "22:00-22:00",
                                      "Son 22:00-23:00",
                                      "Mon- 22:00-23:00",
                                      "22:00-23:00 Mon",
                                      " ",
                                      "",
                                      "Mon 22:00-23:00x"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct err err = {0};
        assert_true(permit_window(&permit, bad[i], &err) < 0);
        assert_non_null(strstr(err.msg, "22:00-06:00"));
    }
    assert_int_equal(permit.windows_n, 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_every_fault_has_a_class, tear_down),
        cmocka_unit_test_teardown(test_a_node_that_is_the_stores_is_shared, tear_down),
        cmocka_unit_test_teardown(test_a_fault_that_reaches_further_is_named, tear_down),
        cmocka_unit_test_teardown(test_hosts_users_and_addresses_are_denied, tear_down),
        cmocka_unit_test_teardown(test_what_denies_nothing_is_refused, tear_down),
        cmocka_unit_test_teardown(test_a_window_may_lead_beyond_midnight, tear_down),
        cmocka_unit_test_teardown(test_a_window_is_of_the_day_on_which_it_begins, tear_down),
        cmocka_unit_test_teardown(test_the_longest_of_several_counts, tear_down),
        cmocka_unit_test_teardown(test_what_is_no_window_is_refused, tear_down),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, set_up, NULL);
}
