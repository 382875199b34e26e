/* rank_test: whether one sample of times lies above another, by ranks alone: nothing is supposed of
 * how times are spread, and one wild run counts no more than one rank. **Pure.**
 *
 * All p-values are one-sided: how often chance alone would bring `v` as far above `base` as it is.
 * Ties have their mean rank. They are exact, of all ways to deal the ranks out, up to
 * RANK_TEST_EXACT values in all; beyond, a normal approximation with the correction for ties. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { RANK_TEST_EXACT = 120 };

struct rank_test {
    double u;           /* pairs in which v is the greater, ties counting a half */
    double p;           /* 0 to 1; 1 where a sample is empty */
    double superiority; /* u of all pairs: 0.5 is no difference, 1 all of v above all of base */
    bool exact;
};

/* Mann and Whitney's test of two samples that have nothing to do with each other. */
struct rank_test rank_test_two(const double *v, size_t n, const double *base, size_t base_n);

/* Wilcoxon's test of differences of pairs: whether they lie above 0. Those of 0 are left out. u is
 * the sum of the ranks of those above 0, superiority its part of all ranks. */
struct rank_test rank_test_pairs(const double *difference, size_t n);

/* Hodges and Lehmann's estimate of how far v lies above base: the median of all differences. 0 where
 * a sample is empty. */
double rank_test_shift(const double *v, size_t n, const double *base, size_t base_n);

/* By how much v lies above base at most: the upper limit of rank_test_shift, which is exceeded z
 * standard errors high (1.645: in one of twenty cases). By the normal approximation of the ranks.
 * INFINITY: so few runs have no limit. */
double rank_test_shift_most(const double *v, size_t n, const double *base, size_t base_n, double z);
/* The middle of differences of pairs, the median of the means of all two of them and of each with
 * itself (0 of none), and its upper limit, as above. */
double rank_test_middle(const double *difference, size_t n);
double rank_test_middle_most(const double *difference, size_t n, double z);

/* The median; 0 of none. The values are put in order. */
double rank_test_median(double *v, size_t n);
double rank_test_median_of(const double *v, size_t n); /* the same; they stay as they are */

/* Cliff's words for how large an effect is: "none", "small", "medium", "large". */
const char *rank_test_size(double superiority);
