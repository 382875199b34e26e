/* fixed_point: sums that do not depend on the order of addition.
 *
 * A float becomes an int64 of 2^-32 units (rounded to nearest, ties to even) and integers are
 * added; twelve shards of values below 2^18 are far from the end of an int64. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIXED_POINT_ONE   0x1p32
#define FIXED_POINT_LIMIT 0x1p18f

/* sum[i] += x[i]. Returns false when an x is not a number or beyond the limit; sum is then of no
 * use. */
bool fixed_point_add(int64_t *sum, const float *x, size_t n);

int64_t fixed_point_of(double x); /* |x| < 2^18 */
double fixed_point_value(int64_t sum);
