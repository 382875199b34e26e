/* conv: a convolution as a matrix product. Unfolding makes one row per (channel, ky, kx) and one
 * column per output pixel, so that a layer is one product. Its bias, where there is one, is the
 * pool's behind it. */
#include "scenarios/jobs/ranktrain/model/layer.h"

#include "scenarios/jobs/ranktrain/model/narrow.h"
#include "scenarios/jobs/ranktrain/wide.h"

#include <string.h>

/* The input with its border of zeros, which stay zero, and the unfolded input, where they are not
 * the input itself. */
static bool is_padded(const struct model_layer *l) {
    return l->padding > 0;
}

static bool is_unfolded(const struct model_layer *l) {
    return l->kernel > 1 || l->stride > 1;
}

static int size_of(const struct model_layer *l) {
    return l->in.side + 2 * l->padding;
}

static int rows_of(const struct model_layer *l) {
    return l->in.channels * l->kernel * l->kernel;
}

static int pixels_of(const struct model_layer *l) {
    return (int)layer_pixels(&l->out);
}

static size_t padded_floats(const struct model_layer *l) {
    size_t size = (size_t)size_of(l);
    return is_padded(l) ? (size_t)(l->in.channels * l->in.batch) * size * size : 0;
}

static size_t unfolded_floats(const struct model_layer *l) {
    return is_unfolded(l) ? (size_t)rows_of(l) * (size_t)pixels_of(l) : 0;
}

static bool conv_plan(struct model_layer *l) {
    if (l->in.side == 0 || size_of(l) < l->kernel)
        return false;
    l->out = (struct layer_shape){.channels = l->channels,
                                  .side = (size_of(l) - l->kernel) / l->stride + 1,
                                  .batch = l->in.batch};
    l->fan_in = rows_of(l);
    l->trained = (size_t)l->channels * (size_t)rows_of(l);
    l->kept = l->borrowed = padded_floats(l) + unfolded_floats(l);
    return true;
}

/* The images get a border of zeros, which is there already. */
static void pad(const struct model_layer *l, const float *plain, float *ret_padded) {
    size_t side = (size_t)l->in.side, size = (size_t)size_of(l), padding = (size_t)l->padding;
    for (int i = 0; i < l->in.channels * l->in.batch; i++, ret_padded += size * size)
        for (size_t y = 0; y < side; y++, plain += side)
            memcpy(ret_padded + (y + padding) * size + padding, plain, side * sizeof(*plain));
}

static void crop(const struct model_layer *l, const float *padded, float *ret_plain) {
    size_t side = (size_t)l->in.side, size = (size_t)size_of(l), padding = (size_t)l->padding;
    for (int i = 0; i < l->in.channels * l->in.batch; i++, padded += size * size)
        for (size_t y = 0; y < side; y++, ret_plain += side)
            memcpy(ret_plain, padded + (y + padding) * size + padding, side * sizeof(*padded));
}

/* side is a constant at each call, so that a row is a few wide moves. */
static inline __attribute__((always_inline)) void
unfold_rows(const struct model_layer *l, const float *input, float *unfolded, int side) {
    int batch = l->in.batch;
    size_t size = (size_t)size_of(l), k = (size_t)l->kernel;
    for (int ch = 0; ch < l->in.channels; ch++)
        for (size_t at = 0; at < k * k; at++)
            for (int n = 0; n < batch; n++) {
                const float *src =
                    input + (size_t)(ch * batch + n) * size * size + at / k * size + at % k;
                for (int y = 0; y < side; y++, src += size, unfolded += side)
                    memcpy(unfolded, src, (size_t)side * sizeof(*src));
            }
}

static void unfold_strided(const struct model_layer *l, const float *input, float *unfolded) {
    int batch = l->in.batch;
    size_t size = (size_t)size_of(l), k = (size_t)l->kernel, stride = (size_t)l->stride;
    size_t side = (size_t)l->out.side;
    for (int ch = 0; ch < l->in.channels; ch++)
        for (size_t at = 0; at < k * k; at++)
            for (int n = 0; n < batch; n++) {
                const float *src =
                    input + (size_t)(ch * batch + n) * size * size + at / k * size + at % k;
                for (size_t y = 0; y < side; y++, src += stride * size)
                    for (size_t x = 0; x < side; x++)
                        *unfolded++ = src[x * stride];
            }
}

WIDE static void unfold(const struct model_layer *l, const float *input, float *ret_unfolded) {
    if (l->stride > 1)
        unfold_strided(l, input, ret_unfolded);
    else if (l->out.side == 28)
        unfold_rows(l, input, ret_unfolded, 28);
    else if (l->out.side == 10)
        unfold_rows(l, input, ret_unfolded, 10);
    else
        unfold_rows(l, input, ret_unfolded, l->out.side);
}

static inline __attribute__((always_inline)) void fold_rows(const struct model_layer *l,
                                                            const float *restrict unfolded,
                                                            float *restrict input, int side,
                                                            size_t stride) {
    int batch = l->in.batch;
    size_t size = (size_t)size_of(l), k = (size_t)l->kernel;
    for (int ch = 0; ch < l->in.channels; ch++)
        for (size_t at = 0; at < k * k; at++)
            for (int n = 0; n < batch; n++) {
                float *dst =
                    input + (size_t)(ch * batch + n) * size * size + at / k * size + at % k;
                for (int y = 0; y < side; y++, dst += stride * size, unfolded += side)
                    for (int x = 0; x < side; x++)
                        dst[(size_t)x * stride] += unfolded[x];
            }
}

/* The transpose of unfolding: every pixel becomes the sum of its copies. */
WIDE static void fold(const struct model_layer *l, const float *unfolded, float *ret_input) {
    size_t size = (size_t)size_of(l);
    memset(ret_input, 0, (size_t)(l->in.channels * l->in.batch) * size * size * sizeof(*ret_input));
    if (l->stride > 1)
        fold_rows(l, unfolded, ret_input, l->out.side, (size_t)l->stride);
    else if (l->out.side == 10)
        fold_rows(l, unfolded, ret_input, 10, 1);
    else
        fold_rows(l, unfolded, ret_input, l->out.side, 1);
}

static bool is_narrow(const struct model_layer *l) {
    return l->out.channels == NARROW_ROWS && pixels_of(l) % (2 * NARROW_LANES) == 0;
}

static void conv_forward(const struct layer_pass *p) {
    const struct model_layer *l = p->l;
    int rows = rows_of(l), pixels = pixels_of(l);
    const float *columns = p->in;
    if (is_padded(l)) {
        pad(l, p->in, p->kept);
        columns = p->kept;
    }
    if (is_unfolded(l)) {
        unfold(l, columns, p->kept + padded_floats(l));
        columns = p->kept + padded_floats(l);
    }
    if (is_narrow(l))
        narrow_product(pixels, rows, p->trained, columns, p->out);
    else
        blas_product(p->blas, false, l->out.channels, pixels, rows, false, p->trained, rows, false,
                     columns, pixels, p->out);
}

/* What unfolding and padding were given, from the gradient of what they made. */
static void spread(const struct layer_pass *p, const float *d_columns, float *padded) {
    const struct model_layer *l = p->l;
    float *whole = is_padded(l) ? padded : p->ret_d_in;
    if (is_unfolded(l))
        fold(l, d_columns, whole);
    if (is_padded(l))
        crop(l, whole, p->ret_d_in);
}

static void conv_backward(const struct layer_pass *p) {
    const struct model_layer *l = p->l;
    int rows = rows_of(l), pixels = pixels_of(l);
    size_t padded = padded_floats(l);
    const float *columns = is_unfolded(l) ? p->kept + padded : is_padded(l) ? p->kept : p->in;
    if (is_narrow(l))
        narrow_gradient(pixels, rows, p->d_out, columns, p->ret_d_trained);
    else
        blas_product(p->blas, false, l->out.channels, rows, pixels, false, p->d_out, pixels, true,
                     columns, pixels, p->ret_d_trained);
    if (!p->ret_d_in)
        return;
    float *d_columns = is_unfolded(l) ? p->borrowed + padded
                       : is_padded(l) ? p->borrowed
                                      : p->ret_d_in;
    blas_product(p->blas, false, rows, pixels, l->out.channels, true, p->trained, rows, false,
                 p->d_out, pixels, d_columns);
    spread(p, d_columns, p->borrowed);
}

const struct layer_kind layer_conv = {
    .name = "conv",
    .plan = conv_plan,
    .forward = conv_forward,
    .backward = conv_backward,
};
