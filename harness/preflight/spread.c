#include "harness/preflight/spread.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_number(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double spread_median(double *v, size_t n) {
    qsort(v, n, sizeof(*v), by_number);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

double spread_mad(const double *v, size_t n, double middle) {
    double *away = mem_array(double, n), mad;
    for (size_t i = 0; i < n; i++)
        away[i] = fabs(v[i] - middle);
    mad = spread_median(away, n);
    free(away);
    return mad;
}

bool spread_is_out(double x, double middle, double mad, bool above) {
    double beyond = above ? x - middle : middle - x;
    bool far = above ? x > 10 * middle : x < middle / 10;
    return far || (beyond > 3 * mad && beyond > middle / 3);
}
