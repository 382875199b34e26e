/* CUDA C++ for nvcc and C for any compiler whose <cuda_runtime.h> says what a thread is. */
#include "scenarios/jobs/ranktrain/gpu/kernels.h"

#include <cuda_runtime.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __device__

enum { B = NETWORK_BATCH, PADDED = NETWORK_PADDED };

/* Which element this thread computes. */
INLINE int element(void) {
    return (int)(blockIdx.x * blockDim.x + threadIdx.x);
}

INLINE struct network_shard *shard_of(struct network *n) {
    return &n->shards[blockIdx.y];
}

KERNEL void kernel_load(struct network *n) {
    int t = element(), sample = t / (PADDED * PADDED), at = t % (PADDED * PADDED);
    int y = at / PADDED - 2, x = at % PADDED - 2;
    if (sample >= B)
        return;
    float v = 0;
    if (y >= 0 && y < LENET_SIDE && x >= 0 && x < LENET_SIDE) {
        uint8_t pixel = n->in.images[blockIdx.y][sample][y * LENET_SIDE + x];
        v = ((float)pixel / 255.0f - 0.2860f) / 0.3530f;
    }
    shard_of(n)->input[t] = v;
}

/* Takes the largest of four (the first of equals), adds the bias, cuts it off below zero. */
INLINE void pool(const float v[4], float bias, float *ret, int32_t *ret_choice) {
    float top = v[1] > v[0] ? v[1] : v[0], low = v[3] > v[2] ? v[3] : v[2];
    int at_top = v[1] > v[0] ? 1 : 0, at_low = v[3] > v[2] ? 3 : 2;
    float x = (low > top ? low : top) + bias;
    *ret = x > 0 ? x : 0;
    *ret_choice = low > top ? at_low : at_top;
}

/* The four pixels of one square of a convolution: in is the square's corner in the first channel.
 */
INLINE void convolve(const float *in, int channels, int row, int plane, const float *weights,
                     float ret[4]) {
    float a = 0, b = 0, c = 0, d = 0;
    for (int ch = 0; ch < channels; ch++, in += plane)
        for (int ky = 0; ky < 5; ky++)
            for (int kx = 0; kx < 5; kx++) {
                float w = *weights++;
                const float *p = in + ky * row + kx;
                a += w * p[0];
                b += w * p[1];
                c += w * p[row];
                d += w * p[row + 1];
            }
    ret[0] = a;
    ret[1] = b;
    ret[2] = c;
    ret[3] = d;
}

KERNEL void kernel_conv1(struct network *n) {
    struct network_shard *s = shard_of(n);
    int t = element(), q = t % 196, sample = t / 196 % B, o = t / 196 / B;
    float v[4];
    if (o >= 6)
        return;
    const float *in = s->input + sample * PADDED * PADDED + q / 14 * 2 * PADDED + q % 14 * 2;
    convolve(in, 1, PADDED, 0, n->in.parameters + LENET_CONV1_WEIGHTS + o * 25, v);
    pool(v, n->in.parameters[LENET_CONV1_BIAS + o], &s->pooled1[t], &s->choice1[t]);
}

KERNEL void kernel_conv2(struct network *n) {
    struct network_shard *s = shard_of(n);
    int t = element(), q = t % 25, o = t / 25 % 16, sample = t / 400;
    float v[4];
    if (sample >= B)
        return;
    const float *in = s->pooled1 + sample * 196 + q / 5 * 2 * 14 + q % 5 * 2;
    convolve(in, 6, 14, B * 196, n->in.parameters + LENET_CONV2_WEIGHTS + o * 150, v);
    pool(v, n->in.parameters[LENET_CONV2_BIAS + o], &s->pooled2[t], &s->choice2[t]);
}

/* One output of a fully connected layer: threads that lie side by side share a row of weights. */
INLINE void dense(const float *weights, const float *bias, const float *input, int in, int out,
                  int relu, float *ret) {
    int t = element(), sample = t % B, o = t / B;
    if (o >= out)
        return;
    const float *w = weights + o * in, *x = input + sample * in;
    float sum = 0;
    for (int i = 0; i < in; i++)
        sum += x[i] * w[i];
    sum += bias[o];
    ret[sample * out + o] = relu && sum < 0 ? 0 : sum;
}

KERNEL void kernel_dense1(struct network *n) {
    const float *p = n->in.parameters;
    struct network_shard *s = shard_of(n);
    dense(p + LENET_DENSE1_WEIGHTS, p + LENET_DENSE1_BIAS, s->pooled2, 400, 120, 1, s->hidden1);
}

KERNEL void kernel_dense2(struct network *n) {
    const float *p = n->in.parameters;
    struct network_shard *s = shard_of(n);
    dense(p + LENET_DENSE2_WEIGHTS, p + LENET_DENSE2_BIAS, s->hidden1, 120, 84, 1, s->hidden2);
}

KERNEL void kernel_dense3(struct network *n) {
    const float *p = n->in.parameters;
    struct network_shard *s = shard_of(n);
    dense(p + LENET_DENSE3_WEIGHTS, p + LENET_DENSE3_BIAS, s->hidden2, 84, LENET_CLASSES, 0,
          s->logits);
}

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
    struct network_shard *s = shard_of(n);
    int sample = element();
    if (sample >= B)
        return;
    const float *logits = s->logits + sample * LENET_CLASSES;
    float *d = s->d_logits + sample * LENET_CLASSES, top = logits[0];
    int label = n->in.labels[blockIdx.y][sample];
    double sum = 0, e[LENET_CLASSES];
    for (int k = 1; k < LENET_CLASSES; k++)
        top = logits[k] > top ? logits[k] : top;
    for (int k = 0; k < LENET_CLASSES; k++) {
        e[k] = exp_of((double)logits[k] - top);
        sum += e[k];
    }
    for (int k = 0; k < LENET_CLASSES; k++)
        d[k] = (float)(e[k] / sum - (k == label));
    s->losses[sample] = log_of(sum) - ((double)logits[label] - top);
}

/* One element of the gradient of a layer's input, cut off where that was cut off. */
INLINE void dense_back(const float *weights, const float *d_out, const float *input, int in,
                       int out, float *ret) {
    int t = element(), i = t % in, sample = t / in;
    if (sample >= B)
        return;
    const float *g = d_out + sample * out;
    float sum = 0;
    for (int o = 0; o < out; o++)
        sum += g[o] * weights[o * in + i];
    ret[t] = input[t] > 0 ? sum : 0;
}

KERNEL void kernel_d_hidden2(struct network *n) {
    struct network_shard *s = shard_of(n);
    dense_back(n->in.parameters + LENET_DENSE3_WEIGHTS, s->d_logits, s->hidden2, 84, LENET_CLASSES,
               s->d_hidden2);
}

KERNEL void kernel_d_hidden1(struct network *n) {
    struct network_shard *s = shard_of(n);
    dense_back(n->in.parameters + LENET_DENSE2_WEIGHTS, s->d_hidden2, s->hidden1, 120, 84,
               s->d_hidden1);
}

KERNEL void kernel_d_pooled2(struct network *n) {
    struct network_shard *s = shard_of(n);
    dense_back(n->in.parameters + LENET_DENSE1_WEIGHTS, s->d_hidden1, s->pooled2, 400, 120,
               s->d_pooled2);
}

/* Of the four pixels of a square only the largest had an effect. (dy, dx) is how far a pixel of the
 * input lies from the square's corner: it was one of the 25 that are multiplied for that largest
 * one, or it had no effect, and then the weight is 0. Without branches: neighbours would part. */
INLINE float weight_at(const float *weights, int choice, int dy, int dx) {
    int ky = dy - (choice >> 1), kx = dx - (choice & 1);
    int within = ((unsigned)ky < 5) & ((unsigned)kx < 5);
    float w = weights[within ? ky * 5 + kx : 0];
    return within ? w : 0;
}

KERNEL void kernel_d_pooled1(struct network *n) {
    struct network_shard *s = shard_of(n);
    int t = element(), y = t % 196 / 14, x = t % 14, sample = t / 196 % B, c = t / 196 / B;
    if (c >= 6)
        return;
    const float *weights = n->in.parameters + LENET_CONV2_WEIGHTS + c * 25;
    int top = y > 5 ? (y - 4) / 2 : 0, left = x > 5 ? (x - 4) / 2 : 0;
    int bottom = y / 2 < 4 ? y / 2 : 4, right = x / 2 < 4 ? x / 2 : 4;
    float sum = 0;
    for (int o = 0; o < 16; o++, weights += 150)
        for (int qy = top; qy <= bottom; qy++)
            for (int qx = left; qx <= right; qx++) {
                int at = sample * 400 + o * 25 + qy * 5 + qx;
                sum +=
                    s->d_pooled2[at] * weight_at(weights, s->choice2[at], y - 2 * qy, x - 2 * qx);
            }
    s->d_pooled1[t] = s->pooled1[t] > 0 ? sum : 0;
}

/* One sample's part of one parameter of the first layer: 196 terms one after another are enough. */
KERNEL void kernel_d_conv1(struct network *n) {
    struct network_shard *s = shard_of(n);
    int t = element(), i = t % NETWORK_CONV1, sample = t / NETWORK_CONV1;
    if (sample >= B)
        return;
    int bias = i >= 150, o = bias ? i - 150 : i / 25, k = bias ? 0 : i % 25;
    const float *g = s->d_pooled1 + (o * B + sample) * 196;
    const int32_t *choice = s->choice1 + (o * B + sample) * 196;
    const float *in = s->input + sample * PADDED * PADDED + k / 5 * PADDED + k % 5;
    float sum = 0;
    for (int q = 0; q < 196; q++) {
        int y = q / 14 * 2 + choice[q] / 2, x = q % 14 * 2 + choice[q] % 2;
        sum += bias ? g[q] : g[q] * in[y * PADDED + x];
    }
    s->d_conv1[sample][i] = sum;
}

INLINE float gradient_conv1(const struct network_shard *s, int i) {
    float sum = 0;
    for (int sample = 0; sample < B; sample++)
        sum += s->d_conv1[sample][i];
    return sum;
}

INLINE float gradient_conv2(const struct network_shard *s, int i) {
    int bias = i >= 16 * 150, o = bias ? i - 16 * 150 : i / 150, k = bias ? 0 : i % 25;
    int c = bias ? 0 : i % 150 / 25;
    float sum = 0;
    for (int sample = 0; sample < B; sample++) {
        const float *g = s->d_pooled2 + sample * 400 + o * 25;
        const int32_t *choice = s->choice2 + sample * 400 + o * 25;
        const float *in = s->pooled1 + (c * B + sample) * 196 + k / 5 * 14 + k % 5;
        for (int q = 0; q < 25; q++) {
            int y = q / 5 * 2 + choice[q] / 2, x = q % 5 * 2 + choice[q] % 2;
            sum += bias ? g[q] : g[q] * in[y * 14 + x];
        }
    }
    return sum;
}

/* Weights [out][in], then biases [out]. */
INLINE float gradient_dense(const float *d_out, const float *input, int in, int out, int i) {
    int bias = i >= out * in, o = bias ? i - out * in : i / in;
    float sum = 0;
    for (int sample = 0; sample < B; sample++)
        sum +=
            bias ? d_out[sample * out + o] : d_out[sample * out + o] * input[sample * in + i % in];
    return sum;
}

KERNEL void kernel_gradient(struct network *n) {
    struct network_shard *s = shard_of(n);
    int i = element();
    float g;
    if (i >= LENET_PARAMETERS)
        return;
    if (i < LENET_CONV2_WEIGHTS)
        g = gradient_conv1(s, i);
    else if (i < LENET_DENSE1_WEIGHTS)
        g = gradient_conv2(s, i - LENET_CONV2_WEIGHTS);
    else if (i < LENET_DENSE2_WEIGHTS)
        g = gradient_dense(s->d_hidden1, s->pooled2, 400, 120, i - LENET_DENSE1_WEIGHTS);
    else if (i < LENET_DENSE3_WEIGHTS)
        g = gradient_dense(s->d_hidden2, s->hidden1, 120, 84, i - LENET_DENSE2_WEIGHTS);
    else
        g = gradient_dense(s->d_logits, s->hidden2, 84, LENET_CLASSES, i - LENET_DENSE3_WEIGHTS);
    s->gradient[i] = g;
}

/* As fixed_point.h says: 2^-32 units, to the nearest, ties to even; numbers from 2^18 on and what
 * is none are bad. */
INLINE int64_t fixed_point(double x, int32_t *bad) {
    const double magic = 6755399441055744.0; /* 1.5 * 2^52 */
    double d = x * 4294967296.0 + magic;
    int64_t bits, magic_bits;
    memcpy(&bits, &d, sizeof(bits));
    memcpy(&magic_bits, &magic, sizeof(magic_bits));
    if (!(x < 262144.0 && x > -262144.0)) {
        *bad = 1; /* whoever finds one writes the same */
        return 0;
    }
    return bits - magic_bits;
}

KERNEL void kernel_sum(struct network *n) {
    int i = element();
    int64_t sum = 0;
    if (i > LENET_PARAMETERS)
        return;
    for (int k = 0; k < n->in.shards; k++) {
        const struct network_shard *s = &n->shards[k];
        double x = 0;
        if (i < LENET_PARAMETERS)
            x = s->gradient[i];
        else
            for (int sample = 0; sample < B; sample++)
                x += s->losses[sample];
        sum += fixed_point(x, &n->out.bad[k]);
    }
    n->out.sums[i] = sum;
}

KERNEL void kernel_classify(struct network *n) {
    int t = element(), k = t / B, sample = t % B, best = 0;
    if (k >= n->in.shards)
        return;
    const float *logits = n->shards[k].logits + sample * LENET_CLASSES;
    for (int i = 1; i < LENET_CLASSES; i++)
        best = logits[i] > logits[best] ? i : best;
    n->out.classes[k][sample] = (uint8_t)best;
}
