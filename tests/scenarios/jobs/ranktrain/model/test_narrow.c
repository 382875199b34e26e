#include "scenarios/jobs/ranktrain/model/narrow.h"
#include "scenarios/jobs/ranktrain/data/draw.h"
#include "tests/scenarios/jobs/ranktrain/model/naive_blas.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { N = 48, K_MAX = 7, M = NARROW_ROWS };

static void randomize(float *x, int n, uint64_t *seed) {
    for (int i = 0; i < n; i++)
        x[i] = (float)(2 * draw_unit(seed) - 1);
}

static void assert_near(const float *x, const float *y, int n) {
    for (int i = 0; i < n; i++)
        assert_true(fabs((double)x[i] - (double)y[i]) < 1e-5);
}

static void test_products_are_those_of_any_library(void **state) {
    (void)state;
    float a[M * N], b[K_MAX * N], c[M * N], want[M * N];
    uint64_t seed = 1;
    for (int k = 1; k <= K_MAX; k++) {
        randomize(a, M * N, &seed);
        randomize(b, K_MAX * N, &seed);
        narrow_product(N, k, a, b, c);
        blas_product(&naive_blas, false, M, N, k, false, a, k, false, b, N, want);
        assert_near(c, want, M * N);
        narrow_gradient(N, k, a, b, c);
        blas_product(&naive_blas, false, M, k, N, false, a, N, true, b, N, want);
        assert_near(c, want, M * k);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_are_those_of_any_library),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
