/* Whether a store holds the first round back: the decision, its file, and what is in the store. */
#include "agent/core/kv.h"
#include "agent/store/marker.h"
#include "base/sys/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define SESSION "/rankrun/job/0123456789abcdef/s/0123"

static struct kv *kv;
static struct marker m;
static struct err err;
static char dir[] = "/tmp/marker_XXXXXX";

static void put(const char *key) {
    struct arena a = {0};
    struct kv_txn_result result;
    struct kv_op op = {.kind = KV_PUT, .key = kv_string(key), .value = kv_string("{}")};
    struct kv_txn txn = {.success = &op, .n_success = 1};
    assert_int_equal(kv_txn(kv, &txn, &a, &result, NULL), KV_OK);
    arena_fini(&a);
}

/* A store that begins: nothing is left in its memory. */
static bool begin(const char *quarantine) {
    kv_free(kv);
    kv = kv_new(1, 0);
    return marker_open(&m, "127.0.0.1", 29400, quarantine, kv, &err);
}

static int set_up(void **state) {
    (void)state;
    strcpy(dir + strlen(dir) - 6, "XXXXXX");
    assert_int_equal(file_make_temp_dir(dir, NULL), 0);
    setenv("XDG_RUNTIME_DIR", dir, 1);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    kv = kv_free(kv);
    return file_remove_tree(dir, NULL);
}

static void test_only_a_marker_that_was_left_in_this_boot_is_owed_for(void **state) {
    (void)state;
    assert_int_equal(marker_judge(NULL, "b-2"), MARKER_NONE);
    assert_int_equal(marker_judge("b-1\n", "b-2"), MARKER_OF_EARLIER_BOOT);
    assert_int_equal(marker_judge("b-2\n", "b-2"), MARKER_LEFT);
    assert_int_equal(marker_judge("b-21\n", "b-2"), MARKER_OF_EARLIER_BOOT);
    assert_int_equal(marker_judge("", "b-2"), MARKER_LEFT);   /* cut short */
    assert_int_equal(marker_judge("b-", "b-2"), MARKER_LEFT); /* likewise */
    for (enum marker_found f = MARKER_NONE; f <= MARKER_UNKNOWN; f++) {
        assert_int_equal(marker_owes("auto", f), f >= MARKER_LEFT);
        assert_true(marker_owes("always", f));
        assert_false(marker_owes("never", f));
    }
}

static void test_a_store_that_was_killed_holds_back_and_one_that_ended_does_not(void **state) {
    (void)state;
    assert_false(begin("auto"));
    assert_int_equal(kv_count(kv), 0);
    assert_true(file_exists(m.path));
    marker_close(&m, kv);
    assert_false(begin("auto"));
    assert_true(begin("auto")); /* the one before was never closed */
    assert_int_equal(kv_count(kv), 1);
    assert_int_equal(err.code, 0);
}

static void test_a_store_that_ends_under_its_agents_leaves_its_marker(void **state) {
    (void)state;
    assert_false(begin("auto"));
    put("/rankrun/job/cur");
    put("/rankrun/s/0123456789abcdef/m/0123");
    assert_false(marker_needed(kv));
    put(SESSION);
    assert_true(marker_needed(kv));
    marker_close(&m, kv);
    assert_true(begin("auto"));
    marker_close(&m, kv); /* what it was to hold back may still be owed */
    assert_true(begin("auto"));
}

static void test_what_was_held_back_for_is_forgotten_after_ten_minutes(void **state) {
    (void)state;
    assert_true(begin("always"));
    assert_true(marker_needed(kv));
    kv_lease_expire(kv, INT64_MAX - 1);
    assert_false(marker_needed(kv));
    assert_int_equal(kv_count(kv), 0);
}

static void test_a_folder_that_others_may_write_is_not_believed(void **state) {
    (void)state;
    char path[128];
    snprintf(path, sizeof(path), "%s/rankrun", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, 0777), 0);
    begin("never");
    assert_int_not_equal(strncmp(m.path, dir, strlen(dir)), 0);
    marker_close(&m, kv);
}

int main(int argc, char **argv) {
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_only_a_marker_that_was_left_in_this_boot_is_owed_for,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_store_that_was_killed_holds_back_and_one_that_ended_does_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_store_that_ends_under_its_agents_leaves_its_marker,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_was_held_back_for_is_forgotten_after_ten_minutes,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_folder_that_others_may_write_is_not_believed, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
