#include "agent/store/quota.h"

#include "agent/core/kv.h"
#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { KB = 1 << 10, MB = 1 << 20 };

static struct kv *kv;
static struct quota quota;
static char big[MB];

static int set_up(void **state) {
    (void)state;
    kv = kv_new(1, 0);
    quota = (struct quota){.limits = {.runs_max = 4 * MB, .others_max = MB, .history_max = MB}};
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    kv = kv_free(kv);
    return 0;
}

/* Puts it unless that is refused; returns whether it was. */
static bool refused(const char *key, size_t n) {
    struct arena a = {0};
    struct kv_txn_result r;
    struct kv_op op = {.kind = KV_PUT, .key = kv_string(key), .value = {big, n}};
    struct kv_txn txn = {.success = &op, .n_success = 1};
    if (quota_refuses(&quota, kv, &txn, 1))
        return true;
    assert_int_equal(kv_txn(kv, &txn, &a, &r, NULL), 0);
    quota_wrote(&quota, kv, n);
    arena_fini(&a);
    return false;
}

static const char *session(const char *run, int i) {
    static char key[256];
    snprintf(key, sizeof(key), "/rankrun/%s/0123456789abcdef/s/%032d", run, i);
    return key;
}

static int fill_others(const char *format) {
    int taken = 0;
    char key[256];
    for (int i = 0; i < 1000 && taken == i; i++) {
        snprintf(key, sizeof(key), format, i);
        taken += !refused(key, 100 * KB);
    }
    return taken;
}

static void test_what_is_no_runs_fills_its_own_part_only(void **state) {
    (void)state;
    assert_false(refused("/rankrun/job/cur", 100));
    assert_in_range(fill_others("x%d"), 5, 10);
    for (int i = 0; i < 1000; i++)
        assert_false(refused(session("job", i), 10));
}

static void test_a_large_value_or_a_strange_key_below_a_run_is_no_runs(void **state) {
    (void)state;
    assert_in_range(fill_others("/rankrun/job/0123456789abcdef/s/%032d"), 5, 10);
    assert_true(refused("/rankrun/job/note", 10));
    assert_true(refused("/rankrun/job/0123456789abcdef/note/x", 10));
    assert_false(refused(session("job", 9999), 10));
}

static void
test_where_runs_are_full_beats_are_taken_and_jobs_that_are_there_may_grow(void **state) {
    (void)state;
    int i = 0;
    assert_false(refused("/rankrun/job/cur", 100));
    assert_false(refused(session("job", 0), 10));
    assert_false(refused("/rankrun/many/cur", 100));
    while (i < 10000 && !refused(session("many", i), 10))
        i++;
    assert_in_range(i, 2000, 4096);
    for (int beat = 0; beat < 1000; beat++)
        assert_false(refused(session("job", 0), 12));
    assert_false(refused(session("many", 1), 500));
    assert_false(refused(session("job", 1), 10));
    assert_true(refused("/rankrun/new/cur", 100));
}

static void test_history_is_cut_and_the_newest_of_it_stays(void **state) {
    (void)state;
    for (int i = 0; i < 100; i++)
        assert_false(refused("x", 100 * KB));
    assert_true(kv_compact_revision(kv) > 50);
    assert_true(kv_compact_revision(kv) < kv_revision(kv) - 2);
    assert_true(kv_memory(kv) < 2 * MB);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_no_runs_fills_its_own_part_only),
        TEST(test_a_large_value_or_a_strange_key_below_a_run_is_no_runs),
        TEST(test_where_runs_are_full_beats_are_taken_and_jobs_that_are_there_may_grow),
        TEST(test_history_is_cut_and_the_newest_of_it_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
