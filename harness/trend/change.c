#include "harness/trend/change.h"

#include <math.h>

size_t change_find(const double *v, size_t n, double *ret_p) {
    double most = 0, sum = 0;
    size_t at = 0;
    *ret_p = 1;
    for (size_t i = 0; i + 1 < n; i++) {
        /* Pairs over the border behind i: those that i brings, less those that it was in. */
        for (size_t k = 0; k < n; k++)
            sum += (v[k] > v[i]) - (v[k] < v[i]);
        if (sum > most) {
            most = sum;
            at = i + 1;
        }
    }
    double t = (double)n;
    if (at)
        *ret_p = fmin(1, exp(-6 * most * most / (t * t * t + t * t)));
    return at;
}
