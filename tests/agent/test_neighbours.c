/* Which run is named as the one that waits beside ours, by the keys of the store alone. */
#include "agent/neighbours.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdint.h>
#include <string.h>

enum { KEYS_MAX = 16 };

static bool find(const char *const *keys, const char *run_id, struct neighbour *ret) {
    struct kv_pair pairs[KEYS_MAX] = {0};
    size_t n = 0;
    for (; keys[n]; n++)
        pairs[n].key = kv_string(keys[n]);
    return neighbours_find(pairs, n, run_id, ret);
}

static void assert_named(const struct neighbour *found, const char *run_id, size_t nodes,
                         size_t others) {
    assert_int_equal(found->run_id_len, strlen(run_id));
    assert_memory_equal(found->run_id, run_id, strlen(run_id));
    assert_int_equal(found->nodes, nodes);
    assert_int_equal(found->others, others);
}

static void test_a_run_that_waits_beside_ours_is_named_with_its_nodes(void **state) {
    (void)state;
    static const char *const keys[] = {"/rankrun/quarantine",    "/rankrun/theirs/1f/m/a",
                                       "/rankrun/theirs/1f/s/a", "/rankrun/theirs/1f/s/b",
                                       "/rankrun/theirs/cur",    "/rankrun/us/2e/s/c",
                                       "/rankrun/us/cur",        NULL};
    struct neighbour found;
    assert_true(find(keys, "us", &found));
    assert_named(&found, "theirs", 2, 0);
    assert_true(find(keys, "theirs", &found));
    assert_named(&found, "us", 1, 0);
}

static void test_of_several_the_largest_is_named(void **state) {
    (void)state;
    static const char *const keys[] = {"/rankrun/a/1/s/1", "/rankrun/b/1/s/1",  "/rankrun/b/1/s/2",
                                       "/rankrun/c/1/s/1", "/rankrun/us/2/s/1", NULL};
    struct neighbour found;
    assert_true(find(keys, "us", &found));
    assert_named(&found, "b", 2, 2);
}

static void test_a_run_that_trains_or_is_over_is_none_that_waits(void **state) {
    (void)state;
    static const char *const trains[] = {"/rankrun/a/1/head", "/rankrun/a/1/s/1",
                                         "/rankrun/us/2/s/1", NULL};
    static const char *const over[] = {"/rankrun/a/cur", "/rankrun/us/2/s/1", NULL};
    struct neighbour found;
    assert_false(find(trains, "us", &found));
    assert_false(find(over, "us", &found));
}

/* A spare waits, but not for nodes. */
static void test_whoever_has_had_a_round_misses_nobody(void **state) {
    (void)state;
    static const char *const keys[] = {"/rankrun/a/1/s/1", "/rankrun/us/2/head",
                                       "/rankrun/us/2/s/1", NULL};
    struct neighbour found;
    assert_false(find(keys, "us", &found));
}

static void test_ids_are_compared_as_keys_have_them(void **state) {
    (void)state;
    static const char *const keys[] = {"/rankrun/a%2fb/1/s/1", NULL};
    static const char *const strange[] = {"",           "/rankrun/",     "/rankrun/x",
                                          "/rankrun//", "/else/a/1/s/1", NULL};
    struct neighbour found;
    assert_false(find(keys, "a/b", &found));
    assert_true(find(keys, "a", &found));
    assert_named(&found, "a%2fb", 1, 0);
    assert_false(find(strange, "us", &found));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_that_waits_beside_ours_is_named_with_its_nodes),
        cmocka_unit_test(test_of_several_the_largest_is_named),
        cmocka_unit_test(test_a_run_that_trains_or_is_over_is_none_that_waits),
        cmocka_unit_test(test_whoever_has_had_a_round_misses_nobody),
        cmocka_unit_test(test_ids_are_compared_as_keys_have_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
