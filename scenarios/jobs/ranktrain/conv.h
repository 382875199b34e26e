/* conv: a 5x5 convolution without padding as a matrix product, and the 2x2 max pooling after it.
 *
 * Images of a batch lie channel by channel: [channel][sample][row][column]. Unfolding makes one row
 * per (channel, ky, kx) and one column per output pixel, so that a layer is one product. */
#pragma once

#include "scenarios/jobs/ranktrain/blas.h"

#include <stdint.h>

enum { CONV_KERNEL = 5 };

struct conv {
    int in, out;    /* channels */
    int size, side; /* of the square input and output; side = size - 4 */
    int batch;      /* samples */
};

void conv_unfold(const struct conv *c, const float *input, float *ret_unfolded);
/* The transpose of unfolding: every pixel becomes the sum of its copies. */
void conv_fold(const struct conv *c, const float *unfolded, float *ret_input);

/* ret_out[out][pixels], without the bias: pooling adds it. */
void conv_forward(const struct conv *c, const struct blas *b, const float *weights,
                  const float *unfolded, float *ret_out);
/* Gradients of weights[out][rows] and bias[out]; d_unfolded may be NULL (the first layer). */
void conv_backward(const struct conv *c, const struct blas *b, const float *weights,
                   const float *unfolded, const float *d_out, float *ret_d_weights,
                   float *ret_d_bias, float *ret_d_unfolded);

/* Adds the bias, takes the largest of each 2x2 square (the first of equals) and cuts it off below
 * zero. side is even; ret_choice says which of the four it was. */
void conv_pool(const struct conv *c, const float *out, const float *bias, float *ret_pooled,
               int32_t *ret_choice);
void conv_unpool(const struct conv *c, const float *pooled, const int32_t *choice,
                 const float *d_pooled, float *ret_d_out);
