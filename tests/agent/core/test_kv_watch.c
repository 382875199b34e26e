#include "agent/core/kv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static struct kv *kv;
static struct arena arena;

static int setup(void **state) {
    (void)state;
    kv = kv_new(1, 0);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    kv = kv_free(kv);
    arena_fini(&arena);
    return 0;
}

static void put(const char *const *keys, size_t n) {
    struct kv_txn_result r = {0};
    struct kv_op ops[8] = {{0}};
    for (size_t i = 0; i < n; i++)
        ops[i] = (struct kv_op){.kind = KV_PUT, .key = kv_string(keys[i]), .value = kv_string("v")};
    assert_int_equal(kv_txn(kv, &(struct kv_txn){.success = ops, .n_success = n}, &arena, &r, NULL),
                     0);
}

static void put_one(const char *key) {
    put(&key, 1);
}

/* A number far beyond the room that the table of watched keys begins with. */
static void test_hundreds_of_watched_keys_are_each_told_of_their_own(void **state) {
    (void)state;
    enum { KEYS = 500 };
    struct kv_watch *watches[KEYS];
    char key[16];
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof(key), "key %d", i);
        watches[i] = kv_watch_new(kv, kv_string(key), kv_string(""), 0, NULL);
    }
    for (int i = 0; i < KEYS; i += 7) {
        snprintf(key, sizeof(key), "key %d", i);
        put_one(key);
        assert_ptr_equal(kv_watch_ready(kv), watches[i]);
        assert_null(kv_watch_ready(kv));
    }
    for (int i = 0; i < KEYS; i += 2)
        kv_watch_free(watches[i]);
    put_one("key 1");
    assert_ptr_equal(kv_watch_ready(kv), watches[1]);
}

static void test_ranges_with_the_same_beginning_are_two(void **state) {
    (void)state;
    struct kv_watch *short_one = kv_watch_new(kv, kv_string("b"), kv_string("c"), 0, NULL);
    struct kv_watch *long_one = kv_watch_new(kv, kv_string("b"), kv_string("e"), 0, NULL);
    struct kv_watch *again = kv_watch_new(kv, kv_string("b"), kv_string("e"), 0, NULL);
    put_one("a");
    assert_null(kv_watch_ready(kv));
    put_one("d");
    assert_ptr_equal(kv_watch_ready(kv), long_one);
    assert_ptr_equal(kv_watch_ready(kv), again);
    assert_null(kv_watch_ready(kv));
    put_one("bb");
    assert_ptr_equal(kv_watch_ready(kv), short_one);
}

static void test_a_range_without_an_end_is_all_from_its_key_on(void **state) {
    (void)state;
    struct kv_watch *w = kv_watch_new(kv, kv_string("b"), (struct kv_bytes){"", 1}, 0, NULL);
    put_one("a");
    assert_null(kv_watch_ready(kv));
    put_one("zzz");
    assert_ptr_equal(kv_watch_ready(kv), w);
}

/* All that is left belongs to the revision at which the limit was reached. */
static void test_a_limit_within_the_last_revision_takes_the_rest_of_it(void **state) {
    (void)state;
    static const char *const keys[] = {"a", "b", "c"};
    struct kv_watch *w = kv_watch_new(kv, kv_string("a"), kv_string("z"), 0, NULL);
    struct kv_event *events;
    size_t n = 0;
    put(keys, 3);
    assert_ptr_equal(kv_watch_ready(kv), w);
    assert_int_equal(kv_watch_take(w, 2, &arena, &events, &n), 0);
    assert_int_equal(n, 3);
    assert_null(kv_watch_ready(kv));
}

static void see_event(void *arg, const struct kv_event *event) {
    (void)event;
    ++*(int *)arg;
}

static void test_events_are_shown_from_the_revision_that_is_asked_for(void **state) {
    (void)state;
    int n = 0;
    put_one("a");
    put_one("b");
    kv_each_event(kv, kv_revision(kv), see_event, &n);
    assert_int_equal(n, 1);
    kv_each_event(kv, 0, see_event, &n);
    assert_int_equal(n, 3);
    assert_null(kv_free(NULL));
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_hundreds_of_watched_keys_are_each_told_of_their_own),
        TEST(test_ranges_with_the_same_beginning_are_two),
        TEST(test_a_range_without_an_end_is_all_from_its_key_on),
        TEST(test_a_limit_within_the_last_revision_takes_the_rest_of_it),
        TEST(test_events_are_shown_from_the_revision_that_is_asked_for),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
