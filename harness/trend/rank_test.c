#include "harness/trend/rank_test.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ranked {
    double value;
    bool mine;
    size_t twice; /* its rank, twice: ties have halves */
};

static int by_value(const void *a, const void *b) {
    double x = ((const struct ranked *)a)->value, y = ((const struct ranked *)b)->value;
    return (x > y) - (x < y);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Puts them in order. Returns the sum over all groups of ties of t^3 - t. */
static double rank(struct ranked *v, size_t n) {
    double ties = 0;
    qsort(v, n, sizeof(*v), by_value);
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i; k < n && v[k].value == v[i].value; k++)
            ;
        for (size_t j = i; j < k; j++)
            v[j].twice = i + 1 + k;
        double t = (double)(k - i);
        ties += t * t * t - t;
    }
    return ties;
}

static double upper_tail(double z) {
    return 0.5 * erfc(z / sqrt(2));
}

/* ---- two samples ---- */

/* Of all ways to choose m of these ranks, the part whose sum is `least` or more. ways[k][s]: so many
 * choices of k ranks have the sum s. */
static double chosen_sum(const struct ranked *v, size_t n, size_t m, size_t least) {
    size_t most = 0, row, so_far = 0;
    for (size_t i = 0; i < n; i++)
        most += v[i].twice;
    row = most + 1;
    double *ways = mem_array(double, (m + 1) * row), all = 0, above = 0;
    ways[0] = 1;
    for (size_t i = 0; i < n; i++) {
        so_far += v[i].twice;
        for (size_t k = i + 1 < m ? i + 1 : m; k > 0; k--) {
            /* No k of them have more than the k that are largest by now. */
            size_t highest = k * v[i].twice < so_far ? k * v[i].twice : so_far;
            for (size_t s = highest; s >= v[i].twice; s--)
                ways[k * row + s] += ways[(k - 1) * row + s - v[i].twice];
        }
    }
    for (size_t s = 0; s <= most; s++) {
        all += ways[m * row + s];
        above += s >= least ? ways[m * row + s] : 0;
    }
    free(ways);
    return above / all;
}

static double two_by_normal(double u, double n, double m, double ties) {
    double all = n + m, variance = n * m / 12 * (all + 1 - ties / (all * (all - 1)));
    return variance > 0 ? upper_tail((u - n * m / 2 - 0.5) / sqrt(variance)) : 1;
}

struct rank_test rank_test_two(const double *v, size_t n, const double *base, size_t base_n) {
    struct rank_test t = {.p = 1, .superiority = 0.5, .exact = n + base_n <= RANK_TEST_EXACT};
    size_t all = n + base_n, twice = 0;
    if (!n || !base_n)
        return t;
    struct ranked *r = mem_array(struct ranked, all);
    for (size_t i = 0; i < all; i++)
        r[i] = (struct ranked){.value = i < n ? v[i] : base[i - n], .mine = i < n};
    double ties = rank(r, all);
    for (size_t i = 0; i < all; i++)
        twice += r[i].mine ? r[i].twice : 0;
    t.u = (double)twice / 2 - (double)n * (double)(n + 1) / 2;
    t.superiority = t.u / ((double)n * (double)base_n);
    t.p = t.exact ? chosen_sum(r, all, n, twice)
                  : two_by_normal(t.u, (double)n, (double)base_n, ties);
    free(r);
    return t;
}

/* ---- pairs ---- */

/* Of all ways to give these ranks a sign, the part in which those above 0 have that sum or more. */
static double signed_sum(const struct ranked *v, size_t n, size_t least) {
    size_t most = 0;
    for (size_t i = 0; i < n; i++)
        most += v[i].twice;
    double *ways = mem_array(double, most + 1), all = 0, above = 0;
    ways[0] = 1;
    for (size_t i = 0; i < n; i++)
        for (size_t s = most; s >= v[i].twice; s--)
            ways[s] += ways[s - v[i].twice];
    for (size_t s = 0; s <= most; s++) {
        all += ways[s];
        above += s >= least ? ways[s] : 0;
    }
    free(ways);
    return above / all;
}

static double pairs_by_normal(double u, double n, double ties) {
    double variance = n * (n + 1) * (2 * n + 1) / 24 - ties / 48;
    return variance > 0 ? upper_tail((u - n * (n + 1) / 4 - 0.5) / sqrt(variance)) : 1;
}

struct rank_test rank_test_pairs(const double *difference, size_t n) {
    struct rank_test t = {.p = 1, .superiority = 0.5};
    struct ranked *r = mem_array(struct ranked, n + 1);
    size_t twice = 0, k = 0;
    for (size_t i = 0; i < n; i++)
        if (difference[i] != 0)
            r[k++] = (struct ranked){.value = fabs(difference[i]), .mine = difference[i] > 0};
    double ties = rank(r, k);
    for (size_t i = 0; i < k; i++)
        twice += r[i].mine ? r[i].twice : 0;
    t.exact = k <= RANK_TEST_EXACT;
    if (k) {
        t.u = (double)twice / 2;
        t.superiority = t.u / ((double)k * (double)(k + 1) / 2);
        t.p = t.exact ? signed_sum(r, k, twice) : pairs_by_normal(t.u, (double)k, ties);
    }
    free(r);
    return t;
}

/* ---- sizes ---- */

double rank_test_median(double *v, size_t n) {
    if (!n)
        return 0;
    qsort(v, n, sizeof(*v), by_size);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

double rank_test_median_of(const double *v, size_t n) {
    double *copy = mem_array(double, n + 1);
    if (n)
        memcpy(copy, v, n * sizeof(*v));
    double median = rank_test_median(copy, n);
    free(copy);
    return median;
}

static double *differences(const double *v, size_t n, const double *base, size_t base_n) {
    double *difference = mem_array(double, n *base_n + 1);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < base_n; k++)
            difference[i * base_n + k] = v[i] - base[k];
    return difference;
}

static double *means_of_two(const double *v, size_t n, size_t *ret_n) {
    double *means = mem_array(double, n *(n + 1) / 2 + 1);
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            means[k++] = (v[i] + v[j]) / 2;
    *ret_n = k;
    return means;
}

/* Of n values that stand for a rank statistic with that variance, the one above which it is z
 * standard errors high (Hollander and Wolfe). */
static double upper_limit(double *v, size_t n, double variance, double z) {
    double from_above = floor((double)n / 2 - z * sqrt(variance));
    if (from_above < 1)
        return INFINITY;
    qsort(v, n, sizeof(*v), by_size);
    return v[n - (size_t)from_above];
}

double rank_test_shift(const double *v, size_t n, const double *base, size_t base_n) {
    double *d = differences(v, n, base, base_n), shift = rank_test_median(d, n * base_n);
    free(d);
    return shift;
}

double rank_test_shift_most(const double *v, size_t n, const double *base, size_t base_n,
                            double z) {
    double *d = differences(v, n, base, base_n), pairs = (double)n * (double)base_n;
    double most = upper_limit(d, n * base_n, pairs * (double)(n + base_n + 1) / 12, z);
    free(d);
    return most;
}

double rank_test_middle(const double *difference, size_t n) {
    size_t means_n;
    double *means = means_of_two(difference, n, &means_n),
           middle = rank_test_median(means, means_n);
    free(means);
    return middle;
}

double rank_test_middle_most(const double *difference, size_t n, double z) {
    size_t means_n;
    double *means = means_of_two(difference, n, &means_n), t = (double)n;
    double most = upper_limit(means, means_n, t * (t + 1) * (2 * t + 1) / 24, z);
    free(means);
    return most;
}

const char *rank_test_size(double superiority) {
    double delta = fabs(2 * superiority - 1);
    return delta < 0.147 ? "none" : delta < 0.33 ? "small" : delta < 0.474 ? "medium" : "large";
}
