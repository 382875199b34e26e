/* Ranks: exact p-values as tables have them, ties, and sizes of effects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/trend/rank_test.h"

#include "base/rand.h"

#include <math.h>

#define N(v) (sizeof(v) / sizeof(*(v)))

static void assert_near(double value, double expected, double within) {
    if (fabs(value - expected) > within)
        fail_msg("%.9g, and not %.9g", value, expected);
}

/* Two samples of n and m without ties of which the first has U = u: the lowest ranks are the first's
 * but for so many exchanges with its neighbour. */
static struct rank_test with_u(size_t n, size_t m, size_t u) {
    double v[64], base[64];
    size_t at[64];
    assert_true(n <= 64 && m <= 64 && u <= n * m);
    for (size_t i = 0; i < n; i++)
        at[i] = i;
    for (size_t i = n; i-- > 0 && u;) {
        size_t by = u < m ? u : m;
        at[i] += by;
        u -= by;
    }
    size_t b = 0;
    for (size_t r = 0, i = 0; r < n + m; r++)
        if (i < n && at[i] == r)
            v[i++] = (double)r;
        else
            base[b++] = (double)r;
    assert_int_equal(b, m);
    return rank_test_two(v, n, base, m);
}

/* P(U <= u) of the null distribution, as in any table of Mann and Whitney's: of C(n+m, n) orders so
 * many have it. For P(U >= nm - u), by symmetry. */
static void test_exact_p_values_are_those_of_the_tables(void **state) {
    static const struct {
        size_t n, m, u;
        double p;
    } rows[] = {
        {3, 3, 0, 1.0 / 20},           {4, 4, 0, 1.0 / 70},           {4, 4, 1, 2.0 / 70},
        {4, 4, 2, 4.0 / 70},           {5, 5, 2, 4.0 / 252},          {5, 5, 4, 12.0 / 252},
        {5, 4, 1, 2.0 / 126},          {5, 4, 2, 4.0 / 126},          {10, 10, 0, 1.0 / 184756},
        {10, 10, 23, 3996.0 / 184756}, {10, 10, 27, 8241.0 / 184756}, {10, 10, 19, 1713.0 / 184756},
    };
    for (size_t i = 0; i < N(rows); i++) {
        struct rank_test t = with_u(rows[i].n, rows[i].m, rows[i].n * rows[i].m - rows[i].u);
        assert_true(t.exact);
        assert_near(t.u, (double)(rows[i].n * rows[i].m - rows[i].u), 1e-9);
        assert_near(t.p, rows[i].p, 1e-9);
    }
}

/* The critical values of the one-sided test at 5 % and 1 %: the largest U that is still below. */
static void test_critical_values_are_those_of_the_tables(void **state) {
    static const struct {
        size_t n, m, five, one;
    } rows[] = {{5, 5, 4, 1}, {6, 6, 7, 3}, {8, 8, 15, 9}, {10, 10, 27, 19}, {12, 9, 30, 21}};
    for (size_t i = 0; i < N(rows); i++) {
        size_t n = rows[i].n, m = rows[i].m, all = n * m;
        assert_true(with_u(n, m, all - rows[i].five).p <= 0.05);
        assert_true(with_u(n, m, all - rows[i].five - 1).p > 0.05);
        assert_true(with_u(n, m, all - rows[i].one).p <= 0.01);
        assert_true(with_u(n, m, all - rows[i].one - 1).p > 0.01);
    }
}

/* {1, 2, 2} above {2, 3}: of the ten ways to choose three of the ranks 1, 3, 3, 3, 5 ... */
static void test_ties_have_their_mean_rank(void **state) {
    static const double v[] = {2, 3}, base[] = {1, 2, 2};
    struct rank_test t = rank_test_two(v, 2, base, 3);
    assert_near(t.u, 5, 1e-9); /* 2 above 1, twice a half; 3 above all */
    assert_near(t.superiority, 5.0 / 6, 1e-9);
    assert_near(t.p, 3.0 / 10, 1e-9); /* 5 with one of the three that are 3 */
    static const double same[] = {4, 4, 4, 4};
    assert_near(rank_test_two(same, 4, same, 4).p, 1, 1e-9);
}

/* Where both can be had they agree. */
static void test_the_normal_approximation_meets_the_exact_one(void **state) {
    double v[70], base[70];
    for (size_t i = 0; i < 70; i++) {
        v[i] = (double)((i * 37) % 101) + 9;
        base[i] = (double)((i * 53) % 103);
    }
    struct rank_test exact = rank_test_two(v, 60, base, 60),
                     normal = rank_test_two(v, 61, base, 60);
    assert_true(exact.exact);
    assert_false(normal.exact);
    assert_true(exact.p > 0.001 && exact.p < 0.2);
    assert_near(normal.p, exact.p, 0.03);
}

/* Wilcoxon's signed ranks: P(W >= w) of 2^n signs. For n = 10 the tables have 10 (lower tail) at
 * 2.5 % and 5 at 1 %. */
static void test_signed_ranks_are_those_of_the_tables(void **state) {
    double d[10];
    for (size_t i = 0; i < 10; i++)
        d[i] = (double)i + 1;
    assert_near(rank_test_pairs(d, 10).p, 1.0 / 1024, 1e-12);
    d[4] = -5; /* the sum of those below 0 is 5 */
    assert_near(rank_test_pairs(d, 10).p, 10.0 / 1024, 1e-12);
    d[4] = 5;
    d[9] = -10; /* and 10 */
    assert_near(rank_test_pairs(d, 10).p, 43.0 / 1024, 1e-12);
    static const double none[] = {0, 0, 0};
    assert_near(rank_test_pairs(none, 3).p, 1, 1e-12);
}

static void test_sizes_of_effects(void **state) {
    static const double v[] = {11, 12, 13}, base[] = {1, 2, 3};
    assert_near(rank_test_shift(v, 3, base, 3), 10, 1e-9);
    assert_near(rank_test_two(v, 3, base, 3).superiority, 1, 1e-9);
    assert_near(rank_test_two(base, 3, v, 3).superiority, 0, 1e-9);
    assert_string_equal(rank_test_size(0.5), "none");
    assert_string_equal(rank_test_size(0.6), "small");
    assert_string_equal(rank_test_size(0.7), "medium");
    assert_string_equal(rank_test_size(0.1), "large");
    double even[] = {4, 1, 3, 2}, odd[] = {3, 1, 2};
    assert_near(rank_test_median(even, 4), 2.5, 0);
    assert_near(rank_test_median(odd, 3), 2, 0);
    assert_near(rank_test_median(odd, 0), 0, 0);
}

/* The true difference lies above the limit in one of twenty draws, however many runs there are. */
static void test_upper_limits_hold_in_19_of_20_draws(void **state) {
    enum { DRAWS = 4000 };
    static const size_t sizes[][2] = {{10, 10}, {10, 100}, {25, 40}};
    struct rand r;
    rand_init(&r, 11);
    for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
        size_t n = sizes[k][0], m = sizes[k][1], above = 0, above_pairs = 0;
        for (int draw = 0; draw < DRAWS; draw++) {
            double v[100], base[100], difference[100];
            for (size_t i = 0; i < m; i++)
                base[i] = -log(1 - rand_unit(&r)); /* lopsided, as times are */
            for (size_t i = 0; i < n; i++) {
                v[i] = 0.3 - log(1 - rand_unit(&r));
                difference[i] = v[i] - base[i];
            }
            above += rank_test_shift_most(v, n, base, m, 1.645) < 0.3;
            above_pairs += rank_test_middle_most(difference, n, 1.645) < 0.3;
        }
        assert_in_range(above, DRAWS * 35 / 1000, DRAWS * 65 / 1000);
        assert_in_range(above_pairs, DRAWS * 35 / 1000, DRAWS * 65 / 1000);
    }
}

static void test_of_nothing_nothing_follows(void **state) {
    static const double v[] = {1};
    assert_near(rank_test_two(v, 0, v, 1).p, 1, 0);
    assert_near(rank_test_two(v, 1, v, 0).p, 1, 0);
    assert_near(rank_test_pairs(v, 0).p, 1, 0);
    assert_near(rank_test_shift(v, 0, v, 1), 0, 0);
    assert_near(rank_test_middle(v, 0), 0, 0);
    assert_true(isinf(rank_test_shift_most(v, 1, v, 1, 1.645)));
    assert_true(isinf(rank_test_middle_most(v, 1, 1.645)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_p_values_are_those_of_the_tables),
        cmocka_unit_test(test_critical_values_are_those_of_the_tables),
        cmocka_unit_test(test_ties_have_their_mean_rank),
        cmocka_unit_test(test_the_normal_approximation_meets_the_exact_one),
        cmocka_unit_test(test_signed_ranks_are_those_of_the_tables),
        cmocka_unit_test(test_sizes_of_effects),
        cmocka_unit_test(test_upper_limits_hold_in_19_of_20_draws),
        cmocka_unit_test(test_of_nothing_nothing_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
