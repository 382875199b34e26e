#include "harness/trend/failures.h"

#include <math.h>

/* The logarithm of n over k. */
static double log_choose(size_t n, size_t k) {
    double sum = 0;
    for (size_t i = 1; i <= k; i++)
        sum += log((double)(n - k + i)) - log((double)i);
    return sum;
}

double failures_p(size_t failed, size_t n, size_t base_failed, size_t base_n) {
    size_t all = failed + base_failed, most = all < n ? all : n;
    double p = 0;
    if (!n || !base_n || failed > n || base_failed > base_n)
        return 1;
    for (size_t k = failed; k <= most; k++)
        if (all - k <= base_n)
            p += exp(log_choose(n, k) + log_choose(base_n, all - k) - log_choose(n + base_n, all));
    return p < 1 ? p : 1;
}
