/* CUDA C++ for nvcc and C for any compiler whose <cuda_runtime.h> says what a thread is. */
#include "scenarios/jobs/ranktrain/gpu/kernels.h"

#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __device__

/* Which element this thread computes. */
INLINE int element(void) {
    return (int)(blockIdx.x * blockDim.x + threadIdx.x);
}

/* Where a shard's room is, from the first one's. */
INLINE size_t room_of(const struct network *n) {
    return (size_t)blockIdx.y * (size_t)n->room;
}

INLINE size_t room(const struct network_layer *l) {
    return room_of(l->network);
}

/* The numbers of this shard, where those of all lie one after another. */
INLINE float *own(float *all, int n) {
    return all + (size_t)blockIdx.y * (size_t)n;
}

/* Whoever comes first writes, and whoever comes later adds. */
INLINE void give(float *at, float x, int adds) {
    *at = adds ? *at + x : x;
}

INLINE int pixels_in(const struct network_layer *l) {
    return l->side * l->side;
}

INLINE int pixels_out(const struct network_layer *l) {
    return l->out_side * l->out_side;
}

KERNEL void kernel_load(struct network *n) {
    int t = element(), pixels = n->side * n->side;
    int sample = t / pixels % n->batch, c = t / pixels / n->batch;
    if (c >= n->channels)
        return;
    size_t image = (size_t)blockIdx.y * (size_t)n->batch + (size_t)sample;
    uint8_t pixel = n->images[(image * (size_t)n->channels + (size_t)c) * (size_t)pixels +
                              (size_t)(t % pixels)];
    (n->input + room_of(n))[t] = ((float)pixel / 255.0f - n->mean[c]) / n->deviation[c];
}

/* ---- convolution ---- */

/* Of n steps along a side of `size` pixels, the first ones lie before it: from `begin` on, and below
 * `end`, those of a kernel that lie within. */
INLINE int kernel_begin(int at) {
    return at < 0 ? -at : 0;
}

INLINE int kernel_end(int at, int kernel, int size) {
    return size - at < kernel ? size - at : kernel;
}

KERNEL void kernel_conv(struct network_layer *l) {
    int t = element(), side = l->out_side, x = t % side, y = t / side % side;
    int batch = l->network->batch, n = t / side / side % batch, o = t / side / side / batch;
    if (o >= l->outs)
        return;
    int k = l->kernel, left = x * l->stride - l->padding, top = y * l->stride - l->padding;
    int ky0 = kernel_begin(top), ky1 = kernel_end(top, k, l->side);
    int kx0 = kernel_begin(left), kx1 = kernel_end(left, k, l->side);
    const float *in = l->in + room(l), *weights = l->values + (size_t)o * l->channels * k * k;
    float sum = 0;
    for (int c = 0; c < l->channels; c++, weights += k * k)
        for (int ky = ky0; ky < ky1; ky++) {
            const float *row =
                in + ((size_t)(c * batch + n) * l->side + (top + ky)) * l->side + left;
            for (int kx = kx0; kx < kx1; kx++)
                sum += weights[ky * k + kx] * row[kx];
        }
    (l->out + room(l))[t] = sum;
}

/* The outputs along a side that a pixel, with the border before it, had an effect on. */
INLINE int effect_begin(const struct network_layer *l, int at) {
    int first = at - l->kernel + 1;
    return first > 0 ? (first + l->stride - 1) / l->stride : 0;
}

INLINE int effect_end(const struct network_layer *l, int at) {
    int last = at / l->stride;
    return (last < l->out_side ? last : l->out_side - 1) + 1;
}

KERNEL void kernel_conv_in(struct network_layer *l) {
    int t = element(), side = l->side, batch = l->network->batch, k = l->kernel;
    int x = t % side + l->padding, y = t / side % side + l->padding;
    int n = t / side / side % batch, c = t / side / side / batch;
    if (c >= l->channels)
        return;
    int oy0 = effect_begin(l, y), oy1 = effect_end(l, y);
    int ox0 = effect_begin(l, x), ox1 = effect_end(l, x);
    const float *weights = l->values + (size_t)c * k * k, *d = l->d_out + room(l);
    float sum = 0;
    for (int o = 0; o < l->outs; o++, weights += (size_t)l->channels * k * k)
        for (int oy = oy0; oy < oy1; oy++) {
            const float *row = d + ((size_t)(o * batch + n) * l->out_side + oy) * l->out_side;
            const float *w = weights + (y - oy * l->stride) * k + x;
            for (int ox = ox0; ox < ox1; ox++)
                sum += row[ox] * w[-ox * l->stride];
        }
    give(l->d_in + room(l) + t, sum, l->adds_in);
}

/* The outputs along a side that a place in the kernel had an effect on. */
INLINE int covered_begin(const struct network_layer *l, int k) {
    return k < l->padding ? (l->padding - k + l->stride - 1) / l->stride : 0;
}

INLINE int covered_end(const struct network_layer *l, int k) {
    int last = (l->side - 1 + l->padding - k) / l->stride;
    return (last < l->out_side ? last : l->out_side - 1) + 1;
}

KERNEL void kernel_conv_gradient(struct network_layer *l) {
    int t = element(), k = l->kernel, batch = l->network->batch;
    if (t >= l->trained)
        return;
    int kx = t % k, ky = t / k % k, c = t / k / k % l->channels, o = t / k / k / l->channels;
    int oy0 = covered_begin(l, ky), oy1 = covered_end(l, ky);
    int ox0 = covered_begin(l, kx), ox1 = covered_end(l, kx);
    const float *in = l->in + room(l), *d = l->d_out + room(l);
    float sum = 0;
    for (int n = 0; n < batch; n++)
        for (int oy = oy0; oy < oy1; oy++) {
            const float *g = d + ((size_t)(o * batch + n) * l->out_side + oy) * l->out_side;
            int y = oy * l->stride + ky - l->padding;
            const float *row =
                in + ((size_t)(c * batch + n) * l->side + y) * l->side + kx - l->padding;
            for (int ox = ox0; ox < ox1; ox++)
                sum += g[ox] * row[ox * l->stride];
        }
    own(l->gradient, l->trained)[t] = sum;
}

/* ---- fully connected ---- */

/* Threads that lie side by side share a row of weights. */
KERNEL void kernel_dense(struct network_layer *l) {
    int t = element(), batch = l->network->batch, n = t % batch, o = t / batch;
    if (o >= l->outs)
        return;
    const float *w = l->values + (size_t)o * l->channels, *x = l->in + room(l) + n * l->channels;
    float sum = 0;
    for (int i = 0; i < l->channels; i++)
        sum += x[i] * w[i];
    sum += l->values[(size_t)l->outs * l->channels + o];
    (l->out + room(l))[n * l->outs + o] = l->relu && sum < 0 ? 0 : sum;
}

KERNEL void kernel_dense_in(struct network_layer *l) {
    int t = element(), i = t % l->channels, n = t / l->channels;
    if (n >= l->network->batch)
        return;
    const float *g = l->d_out + room(l) + n * l->outs;
    float sum = 0;
    for (int o = 0; o < l->outs; o++)
        sum += g[o] * l->values[(size_t)o * l->channels + i];
    give(l->d_in + room(l) + t, sum, l->adds_in);
}

/* Weights [out][in], then biases [out]. */
KERNEL void kernel_dense_gradient(struct network_layer *l) {
    int t = element(), weights = l->outs * l->channels, bias = t >= weights;
    if (t >= l->trained)
        return;
    int o = bias ? t - weights : t / l->channels, i = t % l->channels;
    const float *g = l->d_out + room(l) + o, *x = l->in + room(l) + i;
    float sum = 0;
    for (int n = 0; n < l->network->batch; n++, g += l->outs, x += l->channels)
        sum += bias ? *g : *g * *x;
    own(l->gradient, l->trained)[t] = sum;
}

KERNEL void kernel_cut(struct network_layer *l) {
    int t = element();
    if (t >= l->outs * l->network->batch * pixels_out(l))
        return;
    if (!((l->out + room(l))[t] > 0))
        (l->d_out + room(l))[t] = 0;
}

/* ---- batch norm ---- */

KERNEL void kernel_norm_measure(struct network_layer *l) {
    int c = element(), n = l->network->batch * pixels_in(l);
    if (c >= l->channels)
        return;
    float *kept = l->kept + room(l);
    const float *x = l->in + room(l) + (size_t)c * n;
    double mean = l->statistics_so_far[c], variance = l->statistics_so_far[l->channels + c];
    if (l->network->step.learning) {
        double sum = 0, squares = 0;
        for (int i = 0; i < n; i++)
            sum += (double)x[i];
        mean = sum / n;
        for (int i = 0; i < n; i++)
            squares += ((double)x[i] - mean) * ((double)x[i] - mean);
        variance = squares / n;
        own(l->statistics, l->running)[c] = (float)mean;
        own(l->statistics, l->running)[l->channels + c] = (float)(squares / (n - 1));
    }
    double inverse = 1 / sqrt(variance + 1e-5), factor = (double)l->values[c] * inverse;
    kept[KEPT_MEAN * l->channels + c] = (float)mean;
    kept[KEPT_INVERSE * l->channels + c] = (float)inverse;
    kept[KEPT_FACTOR * l->channels + c] = (float)factor;
    kept[KEPT_SHIFT * l->channels + c] =
        (float)((double)l->values[l->channels + c] - mean * factor);
}

KERNEL void kernel_norm(struct network_layer *l) {
    int t = element(), c = t / (l->network->batch * pixels_in(l));
    if (c >= l->channels)
        return;
    const float *kept = l->kept + room(l);
    float v = (l->in + room(l))[t] * kept[KEPT_FACTOR * l->channels + c] +
              kept[KEPT_SHIFT * l->channels + c];
    (l->out + room(l))[t] = l->relu && !(v > 0) ? 0 : v;
}

KERNEL void kernel_norm_gradient(struct network_layer *l) {
    int c = element(), n = l->network->batch * pixels_in(l);
    if (c >= l->channels)
        return;
    float *kept = l->kept + room(l), *gradient = own(l->gradient, l->trained);
    const float *x = l->in + room(l) + (size_t)c * n, *d = l->d_out + room(l) + (size_t)c * n;
    double mean = kept[KEPT_MEAN * l->channels + c], inverse = kept[KEPT_INVERSE * l->channels + c];
    double shift = 0, product = 0;
    for (int i = 0; i < n; i++) {
        shift += (double)d[i];
        product += (double)d[i] * ((double)x[i] - mean);
    }
    double scale = product * inverse, factor = (double)l->values[c] * inverse, share = factor / n;
    gradient[c] = (float)scale;
    gradient[l->channels + c] = (float)shift;
    kept[KEPT_FACTOR * l->channels + c] = (float)factor;
    kept[KEPT_SLOPE * l->channels + c] = (float)(share * scale * inverse);
    kept[KEPT_OFFSET * l->channels + c] = (float)(share * shift);
}

KERNEL void kernel_norm_in(struct network_layer *l) {
    int t = element(), c = t / (l->network->batch * pixels_in(l));
    if (c >= l->channels)
        return;
    const float *kept = l->kept + room(l) + c;
    float x = (l->in + room(l))[t], d = (l->d_out + room(l))[t];
    give(l->d_in + room(l) + t,
         kept[KEPT_FACTOR * l->channels] * d -
             kept[KEPT_SLOPE * l->channels] * (x - kept[KEPT_MEAN * l->channels]) -
             kept[KEPT_OFFSET * l->channels],
         l->adds_in);
}

/* ---- maxima ---- */

/* The largest of four (the first of equals), with the bias, cut off below zero. */
KERNEL void kernel_pool(struct network_layer *l) {
    int t = element(), half = l->out_side, c = t / (half * half * l->network->batch);
    if (c >= l->outs)
        return;
    const float *p = l->in + room(l) + (size_t)(t / half) * 2 * l->side + t % half * 2;
    float a = p[0], b = p[1], d = p[l->side], e = p[l->side + 1];
    float top = b > a ? b : a, low = e > d ? e : d;
    int at_top = b > a ? 1 : 0, at_low = e > d ? 3 : 2;
    float v = (low > top ? low : top) + (l->bias ? l->values[c] : 0);
    (l->out + room(l))[t] = v > 0 ? v : 0;
    (l->choice + room(l))[t] = low > top ? at_low : at_top;
}

KERNEL void kernel_pool_in(struct network_layer *l) {
    int t = element(), half = l->out_side;
    if (t >= l->outs * l->network->batch * half * half)
        return;
    float *p = l->d_in + room(l) + (size_t)(t / half) * 2 * l->side + t % half * 2;
    float g = (l->out + room(l))[t] > 0 ? (l->d_out + room(l))[t] : 0;
    int choice = (l->choice + room(l))[t];
    for (int i = 0; i < 4; i++)
        give(p + i / 2 * l->side + i % 2, i == choice ? g : 0, l->adds_in);
}

KERNEL void kernel_pool_gradient(struct network_layer *l) {
    int c = element(), n = l->network->batch * pixels_out(l);
    if (c >= l->outs)
        return;
    const float *out = l->out + room(l) + (size_t)c * n, *d = l->d_out + room(l) + (size_t)c * n;
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += out[i] > 0 ? d[i] : 0;
    own(l->gradient, l->trained)[c] = sum;
}

/* ---- what has no parameters ---- */

KERNEL void kernel_add(struct network_layer *l) {
    int t = element();
    if (t >= l->outs * l->network->batch * pixels_out(l))
        return;
    float v = (l->in + room(l))[t] + (l->second + room(l))[t];
    (l->out + room(l))[t] = v > 0 ? v : 0;
}

KERNEL void kernel_add_in(struct network_layer *l) {
    int t = element();
    if (t >= l->outs * l->network->batch * pixels_out(l))
        return;
    float d = (l->out + room(l))[t] > 0 ? (l->d_out + room(l))[t] : 0;
    give(l->d_in + room(l) + t, d, l->adds_in);
    give(l->d_second + room(l) + t, d, l->adds_second);
}

/* One feature of a sample: the mean of a channel. */
KERNEL void kernel_average(struct network_layer *l) {
    int t = element(), c = t % l->channels, n = t / l->channels, pixels = pixels_in(l);
    if (n >= l->network->batch)
        return;
    const float *x = l->in + room(l) + (size_t)(c * l->network->batch + n) * pixels;
    double sum = 0;
    for (int i = 0; i < pixels; i++)
        sum += (double)x[i];
    (l->out + room(l))[t] = (float)(sum / pixels);
}

KERNEL void kernel_average_in(struct network_layer *l) {
    int t = element(), pixels = pixels_in(l), batch = l->network->batch;
    int n = t / pixels % batch, c = t / pixels / batch;
    if (c >= l->channels)
        return;
    give(l->d_in + room(l) + t, (l->d_out + room(l))[n * l->channels + c] / (float)pixels,
         l->adds_in);
}

/* From [channel][sample][pixel], which t counts, to [sample][feature]. */
INLINE int flat(const struct network_layer *l, int t) {
    int pixels = pixels_in(l), batch = l->network->batch;
    int n = t / pixels % batch, c = t / pixels / batch;
    return n * l->outs + c * pixels + t % pixels;
}

KERNEL void kernel_flatten(struct network_layer *l) {
    int t = element();
    if (t < l->channels * l->network->batch * pixels_in(l))
        (l->out + room(l))[flat(l, t)] = (l->in + room(l))[t];
}

KERNEL void kernel_flatten_in(struct network_layer *l) {
    int t = element();
    if (t < l->channels * l->network->batch * pixels_in(l))
        give(l->d_in + room(l) + t, (l->d_out + room(l))[flat(l, t)], l->adds_in);
}

/* ---- loss ---- */

/* e^x for x <= 0: 2^k e^r with |r| <= ln(2)/2, and the series of e^r; its 14th power is below one
 * part in 10^17. */
INLINE double exp_of(double x) {
    if (!(x > -700))
        return x == x ? 0 : x;
    double sum = 1, scale;
    int k = (int)(x * 1.4426950408889634 - 0.5);
    double r = x - k * 0.693147180369123816490 - k * 1.90821492927058770002e-10;
    for (int i = 13; i > 0; i--)
        sum = 1 + sum * r / i;
    int64_t bits = (int64_t)(k + 1023) << 52;
    memcpy(&scale, &bits, sizeof(scale));
    return sum * scale;
}

/* The logarithm of a small number from 1: halved until it is near 1, then the series of the inverse
 * hyperbolic tangent of at most 0.1716. */
INLINE double log_of(double x) {
    int k = 0;
    for (; x > 1.4142135623730951; x /= 2)
        k++;
    double z = (x - 1) / (x + 1), square = z * z, sum = 0;
    for (int i = 23; i > 0; i -= 2)
        sum = sum * square + 1.0 / i;
    return k * 0.693147180559945309417 + 2 * z * sum;
}

/* Softmax and cross entropy of one sample (loss.h). */
KERNEL void kernel_loss(struct network *n) {
    int sample = element();
    if (sample >= n->batch)
        return;
    size_t image = (size_t)blockIdx.y * (size_t)n->batch + (size_t)sample;
    const float *logits = n->logits + room_of(n) + sample * n->classes;
    float *d = n->d_logits + room_of(n) + sample * n->classes, top = logits[0];
    int label = n->labels[image];
    double sum = 0;
    for (int k = 1; k < n->classes; k++)
        top = logits[k] > top ? logits[k] : top;
    for (int k = 0; k < n->classes; k++)
        sum += exp_of((double)logits[k] - top);
    for (int k = 0; k < n->classes; k++)
        d[k] = (float)(exp_of((double)logits[k] - top) / sum - (k == label));
    n->losses[image] = log_of(sum) - ((double)logits[label] - top);
}

/* ---- sums ---- */

/* As fixed_point.h says: 2^-32 units, to the nearest, ties to even; numbers from 2^18 on and what
 * is none are bad. */
INLINE int64_t fixed_point(double x, int *bad) {
    const double magic = 6755399441055744.0; /* 1.5 * 2^52 */
    double d = x * 4294967296.0 + magic;
    int64_t bits, magic_bits;
    memcpy(&bits, &d, sizeof(bits));
    memcpy(&magic_bits, &magic, sizeof(magic_bits));
    *bad = !(x < 262144.0 && x > -262144.0);
    return *bad ? 0 : bits - magic_bits;
}

/* Whoever finds one writes the same. */
INLINE void note(const struct network_layer *l, int shard, int what) {
    l->network->bad[shard] = 1;
    l->wrong[what * l->wrong_row + shard] = 1;
}

INLINE int64_t sum_of(const struct network_layer *l, const float *x, int n, int what) {
    int64_t sum = 0;
    int bad;
    for (int k = 0; k < l->network->step.shards; k++, x += n) {
        sum += fixed_point((double)*x, &bad);
        if (bad)
            note(l, k, what);
    }
    return sum;
}

KERNEL void kernel_sum(struct network_layer *l) {
    int t = element();
    if (t < l->trained)
        l->sums[t] = sum_of(l, l->gradient + t, l->trained, WRONG_GRADIENT);
}

KERNEL void kernel_sum_statistics(struct network_layer *l) {
    int t = element();
    if (t < l->running)
        l->statistics_sums[t] = sum_of(l, l->statistics + t, l->running, WRONG_STATISTICS);
}

KERNEL void kernel_loss_sum(struct network *n) {
    int64_t sum = 0;
    if (element() > 0)
        return;
    for (int k = 0; k < n->step.shards; k++) {
        double x = 0;
        int bad;
        for (int i = 0; i < n->batch; i++)
            x += n->losses[k * n->batch + i];
        sum += fixed_point(x, &bad);
        if (bad)
            n->bad[k] = 1;
    }
    *n->loss = sum;
}

KERNEL void kernel_check(struct network_layer *l) {
    int n = l->outs * l->network->batch * pixels_out(l);
    const float *x = l->out + room(l);
    if (element() > 0)
        return;
    for (int i = 0; i < n; i++)
        if (!(x[i] - x[i] == 0)) {
            note(l, (int)blockIdx.y, WRONG_OUTPUT);
            return;
        }
}

KERNEL void kernel_classify(struct network *n) {
    int sample = element(), best = 0;
    if (sample >= n->batch)
        return;
    const float *logits = n->logits + room_of(n) + sample * n->classes;
    for (int i = 1; i < n->classes; i++)
        best = logits[i] > logits[best] ? i : best;
    n->answers[blockIdx.y * (unsigned)n->batch + (unsigned)sample] = (uint8_t)best;
}
