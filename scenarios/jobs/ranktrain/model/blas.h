/* blas: matrix products from OpenBLAS, held to the same bits.
 *
 * The bits of a product depend on the family of kernels OpenBLAS picks for the CPU (eight families
 * gave six results on one machine) and may depend on the number of threads. So the library is
 * loaded only after one thread and one family are set in the environment, which it reads while it
 * is loaded: Haswell where the CPU has AVX2 and FMA, else Nehalem; ARMV8 on arm64. What was picked
 * is part of the label printed beside the model's hash. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

struct blas {
    void *handle;
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
    char label[96]; /* "openblas 0.3.21 Haswell" */
};

/* Returns 0 or a -errno with a sentence that names the package to install. */
int blas_open(struct blas *ret, struct err *err);
void blas_close(struct blas *b);

/* c = op(a) op(b), or c += op(a) op(b) when add; row-major, c is m x n, k the inner length; op
 * transposes what the flag says, lda and ldb are row lengths as stored. */
void blas_product(const struct blas *b, bool add, int m, int n, int k, bool transpose_a,
                  const float *a, int lda, bool transpose_b, const float *bb, int ldb, float *c);
