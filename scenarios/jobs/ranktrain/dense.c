#include "scenarios/jobs/ranktrain/dense.h"

#include <stddef.h>
#include <string.h>

void dense_forward(const struct dense *d, const struct blas *b, const float *weights,
                   const float *bias, const float *input, float *ret_out) {
    blas_product(b, false, d->batch, d->out, d->in, false, input, d->in, true, weights, d->in,
                 ret_out);
    for (int n = 0; n < d->batch; n++)
        for (int o = 0; o < d->out; o++, ret_out++) {
            float v = *ret_out + bias[o];
            *ret_out = d->relu && v < 0 ? 0 : v;
        }
}

void dense_backward(const struct dense *d, const struct blas *b, const float *weights,
                    const float *input, const float *out, float *d_out, float *ret_d_weights,
                    float *ret_d_bias, float *ret_d_input) {
    memset(ret_d_bias, 0, (size_t)d->out * sizeof(*ret_d_bias));
    float *g = d_out;
    for (int n = 0; n < d->batch; n++)
        for (int o = 0; o < d->out; o++, g++, out++) {
            if (d->relu && !(*out > 0))
                *g = 0;
            ret_d_bias[o] += *g;
        }
    blas_product(b, false, d->out, d->in, d->batch, true, d_out, d->out, false, input, d->in,
                 ret_d_weights);
    if (ret_d_input)
        blas_product(b, false, d->batch, d->in, d->out, false, d_out, d->out, false, weights, d->in,
                     ret_d_input);
}
