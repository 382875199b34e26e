/* dense: a fully connected layer. Activations are [sample][feature], weights [out][in]. */
#pragma once

#include "scenarios/jobs/ranktrain/blas.h"

#include <stdbool.h>

struct dense {
    int in, out, batch;
    bool relu; /* cut the output off below zero */
};

void dense_forward(const struct dense *d, const struct blas *b, const float *weights,
                   const float *bias, const float *input, float *ret_out);

/* d_out is the gradient of the output and is changed: with relu it becomes that before the cut.
 * ret_d_input may be NULL. */
void dense_backward(const struct dense *d, const struct blas *b, const float *weights,
                    const float *input, const float *out, float *d_out, float *ret_d_weights,
                    float *ret_d_bias, float *ret_d_input);
