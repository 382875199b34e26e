/* spread: which of several figures are out of line with the others. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The middle of n > 0; sorts v. */
double spread_median(double *v, size_t n);
/* The median of the distances from it (MAD); of n > 0, v is left as it is. */
double spread_mad(const double *v, size_t n, double middle);
/* Beyond 3 MAD below (or, with above, above) the middle and by a third of it at least, so that figures
 * that are nearly equal are not told apart; or by a factor of ten, however far apart the others are:
 * of few hosts the MAD says little. */
bool spread_is_out(double x, double middle, double mad, bool above);
