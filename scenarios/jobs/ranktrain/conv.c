#include "scenarios/jobs/ranktrain/conv.h"

#include "scenarios/jobs/ranktrain/narrow.h"
#include "scenarios/jobs/ranktrain/wide.h"

#include <stddef.h>
#include <string.h>

/* Of the unfolded input. */
static int rows_of(const struct conv *c) {
    return c->in * CONV_KERNEL * CONV_KERNEL;
}

/* Its columns. */
static int pixels_of(const struct conv *c) {
    return c->batch * c->side * c->side;
}

/* side is a constant at each call, so that a row is a few wide moves. */
static inline __attribute__((always_inline)) void
unfold_rows(const struct conv *c, const float *input, float *unfolded, int side) {
    size_t size = (size_t)c->size;
    for (int ch = 0; ch < c->in; ch++)
        for (int k = 0; k < CONV_KERNEL * CONV_KERNEL; k++)
            for (int n = 0; n < c->batch; n++) {
                const float *src = input + (size_t)(ch * c->batch + n) * size * size +
                                   (size_t)(k / CONV_KERNEL) * size + (size_t)(k % CONV_KERNEL);
                for (int y = 0; y < side; y++, src += size, unfolded += side)
                    memcpy(unfolded, src, (size_t)side * sizeof(*src));
            }
}

WIDE void conv_unfold(const struct conv *c, const float *input, float *ret_unfolded) {
    if (c->side == 28)
        unfold_rows(c, input, ret_unfolded, 28);
    else if (c->side == 10)
        unfold_rows(c, input, ret_unfolded, 10);
    else
        unfold_rows(c, input, ret_unfolded, c->side);
}

static inline __attribute__((always_inline)) void
fold_rows(const struct conv *c, const float *restrict unfolded, float *restrict input, int side) {
    size_t size = (size_t)c->size;
    for (int ch = 0; ch < c->in; ch++)
        for (int k = 0; k < CONV_KERNEL * CONV_KERNEL; k++)
            for (int n = 0; n < c->batch; n++) {
                float *dst = input + (size_t)(ch * c->batch + n) * size * size +
                             (size_t)(k / CONV_KERNEL) * size + (size_t)(k % CONV_KERNEL);
                for (int y = 0; y < side; y++, dst += size, unfolded += side)
                    for (int x = 0; x < side; x++)
                        dst[x] += unfolded[x];
            }
}

WIDE void conv_fold(const struct conv *c, const float *unfolded, float *ret_input) {
    memset(ret_input, 0, (size_t)(c->in * c->batch * c->size * c->size) * sizeof(*ret_input));
    if (c->side == 10)
        fold_rows(c, unfolded, ret_input, 10);
    else
        fold_rows(c, unfolded, ret_input, c->side);
}

static bool is_narrow(const struct conv *c) {
    return c->out == NARROW_ROWS && pixels_of(c) % (2 * NARROW_LANES) == 0;
}

void conv_forward(const struct conv *c, const struct blas *b, const float *weights,
                  const float *unfolded, float *ret_out) {
    int rows = rows_of(c), pixels = pixels_of(c);
    if (is_narrow(c))
        narrow_product(pixels, rows, weights, unfolded, ret_out);
    else
        blas_product(b, false, c->out, pixels, rows, false, weights, rows, false, unfolded, pixels,
                     ret_out);
}

/* A fixed order of addition, in eight lanes: the compiler may not reorder a float sum, so it is
 * written in the order that is fast. */
static float sum_of(const float *x, int n) {
    float lane[8] = {0};
    int i = 0;
    for (; i + 8 <= n; i += 8)
        for (int l = 0; l < 8; l++)
            lane[l] += x[i + l];
    for (; i < n; i++)
        lane[0] += x[i];
    return ((lane[0] + lane[4]) + (lane[1] + lane[5])) +
           ((lane[2] + lane[6]) + (lane[3] + lane[7]));
}

void conv_backward(const struct conv *c, const struct blas *b, const float *weights,
                   const float *unfolded, const float *d_out, float *ret_d_weights,
                   float *ret_d_bias, float *ret_d_unfolded) {
    int rows = rows_of(c), pixels = pixels_of(c);
    if (is_narrow(c))
        narrow_gradient(pixels, rows, d_out, unfolded, ret_d_weights);
    else
        blas_product(b, false, c->out, rows, pixels, false, d_out, pixels, true, unfolded, pixels,
                     ret_d_weights);
    for (int o = 0; o < c->out; o++)
        ret_d_bias[o] = sum_of(d_out + (size_t)o * (size_t)pixels, pixels);
    if (ret_d_unfolded)
        blas_product(b, false, rows, pixels, c->out, true, weights, rows, false, d_out, pixels,
                     ret_d_unfolded);
}

/* One row of squares. A function of its own: inlined, its pointers may overlap for the compiler. */
WIDE static __attribute__((noinline)) void pool_row(const float *restrict upper,
                                                    const float *restrict lower, float bias,
                                                    float *restrict pooled,
                                                    int32_t *restrict choice, int half) {
    for (int x = 0; x < half; x++) {
        float a = upper[2 * x], b = upper[2 * x + 1], d = lower[2 * x], e = lower[2 * x + 1];
        float top = b > a ? b : a, low = e > d ? e : d;
        int32_t at_top = b > a ? 1 : 0, at_low = e > d ? 3 : 2;
        float v = (low > top ? low : top) + bias;
        pooled[x] = v > 0 ? v : 0;
        choice[x] = low > top ? at_low : at_top;
    }
}

/* Two neighbours are written at once, as one 64-bit word: the gradient goes to its low (left) or
 * high half, or the word is zero. Little-endian, as the checkpoint is. */
WIDE static __attribute__((noinline)) void
unpool_row(const float *restrict pooled, const int32_t *restrict choice,
           const float *restrict d_pooled, float *restrict upper, float *restrict lower, int half) {
    for (int x = 0; x < half; x++) {
        float g = pooled[x] > 0 ? d_pooled[x] : 0;
        uint32_t bits;
        memcpy(&bits, &g, sizeof(bits));
        uint64_t word = (uint64_t)bits << ((choice[x] & 1) * 32);
        uint64_t at_top = choice[x] < 2 ? word : 0, at_low = word ^ at_top;
        memcpy(&upper[2 * x], &at_top, sizeof(at_top));
        memcpy(&lower[2 * x], &at_low, sizeof(at_low));
    }
}

void conv_pool(const struct conv *c, const float *out, const float *bias, float *ret_pooled,
               int32_t *ret_choice) {
    int side = c->side, half = side / 2, rows = c->batch * half;
    for (int i = 0; i < c->out * rows; i++) {
        const float *lower = out + side;
        pool_row(out, lower, bias[i / rows], ret_pooled, ret_choice, half);
        out += 2 * side;
        ret_pooled += half;
        ret_choice += half;
    }
}

void conv_unpool(const struct conv *c, const float *pooled, const int32_t *choice,
                 const float *d_pooled, float *ret_d_out) {
    int side = c->side, half = side / 2;
    for (int i = 0; i < c->out * c->batch * half; i++) {
        float *lower = ret_d_out + side;
        unpool_row(pooled, choice, d_pooled, ret_d_out, lower, half);
        ret_d_out += 2 * side;
        pooled += half;
        choice += half;
        d_pooled += half;
    }
}
