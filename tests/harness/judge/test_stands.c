/* Stands: every order of two moments that is possible is met at one of them. */
#include "harness/judge/stands.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const int64_t ms = 1000000, s = 1000000000;
enum { NODES_MAX = 9, RECORDS = 5, EVENLY = 64, CLOSELY = 192 };

struct stage {
    struct history history;
    struct clocks clocks;
    struct arena arena;
    struct stands stands;
};

/* So many hosts, some records each, and some of the harness's own. */
static void begin(struct stage *g, int nodes, int64_t bound_ns) {
    static const char *const names[NODES_MAX] = {"n1", "n2", "n3", "n4", "n5",
                                                 "n6", "n7", "n8", "n9"};
    static const char *const kinds[] = {"worker-exit", "agent-exit"};
    *g = (struct stage){.stands = {.n = 7}};
    assert_int_equal(history_create(&g->history, NULL, NULL), 0);
    for (int i = 0; i < RECORDS; i++)
        for (int k = 0; k < nodes; k++) {
            int64_t at_ns = s + (i * nodes + k) * ms;
            struct history_stamp there = {at_ns, bound_ns, at_ns + k * s};
            json_put_string(history_begin_at(&g->history, &there, SOURCE_KERNEL, kinds[i % 2]),
                            "node", names[k]);
            history_end(&g->history);
            history_begin(&g->history, at_ns + 1, SOURCE_HARNESS, "lag");
            history_end(&g->history);
        }
    clocks_load(&g->clocks, &g->history);
    assert_int_equal(g->clocks.n, nodes);
    stands_choose(&g->stands, &g->arena, &g->clocks, &g->history);
}

static void end(struct stage *g) {
    arena_fini(&g->arena);
    clocks_fini(&g->clocks);
    history_fini(&g->history);
}

/* How many of them have these clocks there; b -1: it may be anywhere. */
static int count(const struct stage *g, int a, double a_at, int b, double b_at) {
    int n = 0;
    for (size_t i = 0; i < g->stands.n; i++) {
        const double *share = g->stands.v[i];
        n += share[a] == a_at && (b < 0 || share[b] == b_at);
    }
    return n;
}

static bool is_met(const struct stage *g, const double *wanted, size_t among) {
    for (size_t i = 0; i < among; i++)
        if (memcmp(g->stands.v[i], wanted, g->clocks.n * sizeof(double)) == 0)
            return true;
    return false;
}

static void test_where_all_clocks_are_one_there_is_nothing_to_choose(void **state) {
    (void)state;
    struct stage g;
    begin(&g, 0, 0);
    assert_int_equal(g.stands.n, 0);
    end(&g);
}

static void test_of_few_clocks_every_choice_of_ends_is_there_once(void **state) {
    (void)state;
    for (int nodes = 1; nodes <= 4; nodes++) {
        struct stage g;
        begin(&g, nodes, 5 * ms);
        assert_int_equal(g.stands.n, 1 << nodes);
        for (int late = 0; late < 1 << nodes; late++) {
            double wanted[NODES_MAX];
            for (int k = 0; k < nodes; k++)
                wanted[k] = late >> k & 1;
            assert_true(is_met(&g, wanted, g.stands.n));
        }
        end(&g);
    }
}

static void test_of_many_clocks_all_are_at_an_end_and_each_pair_apart(void **state) {
    (void)state;
    for (int nodes = 5; nodes <= NODES_MAX; nodes++) {
        struct stage g;
        begin(&g, nodes, 5 * ms);
        const double earliest[NODES_MAX] = {0}, latest[NODES_MAX] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
        assert_true(is_met(&g, earliest, g.stands.n));
        assert_true(is_met(&g, latest, g.stands.n));
        for (int a = 0; a < nodes; a++) {
            assert_int_equal(count(&g, a, 0, -1, 0) + count(&g, a, 1, -1, 0), g.stands.n);
            for (int b = 0; b < nodes; b++)
                assert_true(a == b || count(&g, a, 0, b, 1) > 0);
        }
        assert_true(g.stands.n <= 32);
        end(&g);
    }
}

/* Each of 64 equal parts of the bound of each clock is met once, and more besides. */
static void assert_in_between(const struct stage *g, size_t from) {
    for (size_t k = 0; k < g->clocks.n; k++) {
        bool is_met_of[EVENLY] = {false};
        for (size_t i = from; i < from + EVENLY; i++) {
            double share = g->stands.v[i][k];
            assert_true(share > 0 && share < 1);
            assert_false(is_met_of[(int)(share * EVENLY)]);
            is_met_of[(int)(share * EVENLY)] = true;
        }
    }
    for (size_t i = from; i < g->stands.n; i++)
        for (size_t k = 0; k < g->clocks.n; k++)
            assert_true(g->stands.v[i][k] >= 0 && g->stands.v[i][k] <= 1);
}

/* How many orders of a record of the first clock with one of another are met, of those in between. */
static int orders(const struct stage *g, size_t from) {
    int met = 0;
    for (size_t one = 0; one < g->history.n; one++)
        for (size_t other = 0; other < g->history.n; other++) {
            bool before = false, behind = false;
            if (g->clocks.of[one] != 0 || g->clocks.of[other] != 1)
                continue;
            for (size_t i = from; i < g->stands.n; i++) {
                int64_t a_ns = clocks_moment(&g->clocks, &g->history, one, g->stands.v[i][0]);
                int64_t b_ns = clocks_moment(&g->clocks, &g->history, other, g->stands.v[i][1]);
                before |= a_ns < b_ns;
                behind |= a_ns > b_ns;
            }
            met += before && behind;
        }
    return met;
}

static void test_wide_bounds_are_tried_in_between_too(void **state) {
    (void)state;
    for (int nodes = 2; nodes <= 5; nodes++) {
        struct stage g, again;
        begin(&g, nodes, 40 * ms);
        assert_true(clocks_most_ns(&g.clocks) > STANDS_WIDE_NS);
        size_t ends = g.stands.n - EVENLY - CLOSELY;
        assert_int_equal(ends, nodes <= 4 ? 1u << nodes : 16u);
        assert_in_between(&g, ends);
        assert_int_equal(orders(&g, ends), RECORDS * RECORDS);
        begin(&again, nodes, 40 * ms);
        for (size_t i = 0; i < g.stands.n; i++) /* what is drawn is drawn again */
            assert_memory_equal(g.stands.v[i], again.stands.v[i], g.clocks.n * sizeof(double));
        end(&again);
        end(&g);
    }
}

static void test_at_the_limit_ends_are_enough(void **state) {
    (void)state;
    struct stage g;
    begin(&g, 2, 1 * ms);
    assert_int_equal(g.stands.n, 4);
    end(&g);
}

/* Of places that are drawn without that, one in a hundred would. */
static void test_some_bring_two_moments_close(void **state) {
    (void)state;
    struct stage g;
    int close = 0;
    begin(&g, 2, 40 * ms);
    for (size_t i = g.stands.n - CLOSELY; i < g.stands.n; i++) {
        bool near = false;
        for (size_t one = 0; one < g.history.n && !near; one++)
            for (size_t other = 0; other < g.history.n && !near; other++) {
                if (g.clocks.of[one] != 0 || g.clocks.of[other] == 0)
                    continue;
                int64_t apart_ns = clocks_moment(&g.clocks, &g.history, one, g.stands.v[i][0]) -
                                   clocks_moment(&g.clocks, &g.history, other, 0.5);
                near = apart_ns > -10000 && apart_ns < 10000;
            }
        close += near;
    }
    assert_true(close >= 20);
    end(&g);
}

/* Drawn by the number of clocks alone: a run that is judged again is judged by the same places. */
static void test_which_places_are_chosen_is_as_it_was(void **state) {
    (void)state;
    static const uint64_t wanted[NODES_MAX + 1][2] = {
        {0},
        {0xab231d386dc93fed, 0xab3adb17553a23fd},
        {0x1c1bdca057359c5, 0xc8cf01378199dda1},
        {0x67546073caf8a305, 0xe12163351c859f43},
        {0x1ddde66556e0a825, 0x13d379e063734608},
        {0xf46f9f9c88ad0965, 0x6ba45ca699ad0b9e},
        {0xb1c9f57957c5caa5, 0x79cda508e4df9052},
        {0xde018b50148fdbe5, 0xef61d2d6c4cea048},
        {0xc25eda28e9379d25, 0x7ed1fa20ef764989},
        {0xe24fabe3c4a4806d, 0x3ffc42b47843608e},
    };
    for (int nodes = 1; nodes <= NODES_MAX; nodes++)
        for (int wide = 0; wide < 2; wide++) {
            struct stage g;
            uint64_t sum = 14695981039346656037u;
            begin(&g, nodes, wide ? 40 * ms : 5 * ms);
            for (size_t i = 0; i < g.stands.n; i++)
                for (int k = 0; k < nodes; k++)
                    sum = (sum ^ (uint64_t)(g.stands.v[i][k] * 1e12)) * 1099511628211u;
            if (sum != wanted[nodes][wide])
                fail_msg("%d nodes, %d: 0x%" PRIx64, nodes, wide, sum);
            end(&g);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_where_all_clocks_are_one_there_is_nothing_to_choose),
        cmocka_unit_test(test_of_few_clocks_every_choice_of_ends_is_there_once),
        cmocka_unit_test(test_of_many_clocks_all_are_at_an_end_and_each_pair_apart),
        cmocka_unit_test(test_wide_bounds_are_tried_in_between_too),
        cmocka_unit_test(test_which_places_are_chosen_is_as_it_was),
        cmocka_unit_test(test_at_the_limit_ends_are_enough),
        cmocka_unit_test(test_some_bring_two_moments_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
