/* A matrix product without a library, for tests of what is built on one. */
#pragma once

#include "scenarios/jobs/ranktrain/model/blas.h"

#include <stddef.h>

static void naive_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                        const float *a, int lda, const float *b, int ldb, float beta, float *c,
                        int ldc) {
    (void)order;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += (double)(trans_a == 112 ? a[l * lda + i] : a[i * lda + l]) *
                       (double)(trans_b == 112 ? b[j * ldb + l] : b[l * ldb + j]);
            c[i * ldc + j] = (float)(alpha * sum + (beta != 0 ? beta * c[i * ldc + j] : 0));
        }
}

static const struct blas naive_blas = {.sgemm = naive_sgemm};
