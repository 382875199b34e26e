#include "faults/mechanism/impairment.h"
#include "faults/shape.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"};

static struct shape_nodes nodes_of(size_t n, bool store) {
    struct shape_nodes ret = {.n = n, .stores = {"store"}, .stores_n = store};
    for (size_t i = 0; i < n; i++)
        ret.v[i] = names[i];
    return ret;
}

/* "3|2": how many nodes are in each group; the store counts as none. */
static void sizes_of(const char *groups, char ret[64]) {
    int n = 0;
    *ret = 0;
    for (const char *c = groups;; c++) {
        n += *c == 'n' ? 1 : 0;
        if (*c && *c != '|')
            continue;
        snprintf(ret + strlen(ret), 64 - strlen(ret), "%d%s", n, *c ? "|" : "");
        n = 0;
        if (!*c)
            return;
    }
}

static void test_groups_are_as_large_as_the_shape_says(void **state) {
    static const struct {
        int shape;
        size_t n;
        const char *sizes;
    } rows[] = {{SHAPE_ISOLATE, 2, "1|1"},  {SHAPE_ISOLATE, 5, "4|1"},  {SHAPE_HALVES, 4, "2|2"},
                {SHAPE_HALVES, 5, "3|2"},   {SHAPE_MAJORITY, 3, "2|1"}, {SHAPE_MAJORITY, 4, "3|1"},
                {SHAPE_MAJORITY, 7, "4|3"}, {SHAPE_BRIDGE, 3, "1|1"},   {SHAPE_BRIDGE, 6, "2|3"},
                {SHAPE_RING, 4, "1|1|1|1"}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (uint64_t seed = 0; seed < 50; seed++) {
            struct shape_nodes nodes = nodes_of(rows[i].n, seed % 2);
            struct buf text = {0}, again = {0};
            char sizes[64];
            assert_int_equal(shape_groups(rows[i].shape, &nodes, seed, &text, NULL), 0);
            assert_int_equal(shape_groups(rows[i].shape, &nodes, seed, &again, NULL), 0);
            assert_string_equal(buf_str(&text), buf_str(&again));
            sizes_of(buf_str(&text), sizes);
            assert_string_equal(sizes, rows[i].sizes);
            buf_fini(&text);
            buf_fini(&again);
        }
}

static void test_a_store_is_on_the_first_side_or_in_everybodys_reach(void **state) {
    (void)state;
    for (int shape = 0; shape < SHAPES_N; shape++) {
        struct shape_nodes nodes = nodes_of(5, true);
        struct buf text = {0};
        assert_int_equal(shape_groups(shape, &nodes, 7, &text, NULL), 0);
        const char *store = strstr(buf_str(&text), "store"), *bar = strchr(buf_str(&text), '|');
        bool nobody = shape == SHAPE_BRIDGE || shape == SHAPE_RING;
        assert_true(nobody ? !store : store && store < bar);
        buf_fini(&text);
    }
}

static void test_another_seed_draws_others(void **state) {
    (void)state;
    struct shape_nodes nodes = nodes_of(5, false);
    int different = 0;
    for (uint64_t seed = 1; seed < 20; seed++) {
        struct buf a = {0}, b = {0};
        shape_groups(SHAPE_HALVES, &nodes, seed, &a, NULL);
        shape_groups(SHAPE_HALVES, &nodes, seed + 100, &b, NULL);
        different += strcmp(buf_str(&a), buf_str(&b)) != 0;
        buf_fini(&a);
        buf_fini(&b);
    }
    assert_true(different > 10);
}

static void test_a_shape_takes_so_many_nodes_and_has_a_name(void **state) {
    (void)state;
    struct err err = {0};
    struct shape_nodes nodes = nodes_of(3, true);
    struct buf text = {0};
    assert_int_equal(shape_groups(SHAPE_RING, &nodes, 1, &text, &err), -ENOENT);
    assert_string_equal(err.msg, "shape: ring takes 4 nodes, and 3 are on");
    assert_int_equal(shape_of("square", &err), -EINVAL);
    assert_non_null(strstr(err.msg, "square"));
    assert_int_equal(shape_of("bridge", &err), SHAPE_BRIDGE);
    buf_fini(&text);
}

/* Jepsen's promise of this shape. */
static void test_in_a_ring_each_reaches_a_majority_and_no_two_the_same(void **state) {
    (void)state;
    for (int n = 4; n < 64; n++) {
        struct impairment how = {.ring = n, .ring_reach = shape_ring_reach(n)};
        int cut = 0;
        for (int g = 0; g < n; g++) {
            int reached = 0, same = 0;
            for (int h = 0; h < n; h++) {
                assert_int_equal(impairment_is_between(&how, g, h),
                                 impairment_is_between(&how, h, g));
                reached += !impairment_is_between(&how, g, h);
                int differs = 0;
                for (int k = 0; k < n; k++)
                    differs +=
                        impairment_is_between(&how, g, k) != impairment_is_between(&how, h, k);
                same += h != g && !differs;
            }
            assert_true(reached > n / 2);
            assert_int_equal(same, 0);
            cut += n - reached;
        }
        assert_true(cut > 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_are_as_large_as_the_shape_says),
        cmocka_unit_test(test_a_store_is_on_the_first_side_or_in_everybodys_reach),
        cmocka_unit_test(test_another_seed_draws_others),
        cmocka_unit_test(test_a_shape_takes_so_many_nodes_and_has_a_name),
        cmocka_unit_test(test_in_a_ring_each_reaches_a_majority_and_no_two_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
