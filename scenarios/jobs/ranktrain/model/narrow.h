/* narrow: matrix products with very few rows and very many columns, where a general library spends
 * most of its time on copying. The first layer of the network is of that shape.
 *
 * The order of every addition is fixed by the source, eight lanes at a time, so that the bits are
 * the same in registers of any width. */
#pragma once

enum { NARROW_ROWS = 6, NARROW_LANES = 8 };

/* c[6][n] = a[6][k] b[k][n]; n is a multiple of 16. */
void narrow_product(int n, int k, const float *a, const float *b, float *c);

/* c[6][k] = a[6][n] b[k][n] transposed; n is a multiple of 8. */
void narrow_gradient(int n, int k, const float *a, const float *b, float *c);
