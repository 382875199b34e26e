/* pool: the largest of each square of 2x2 (the first of equals), with a bias of its channel where
 * the network says so, cut off below zero. */
#include "scenarios/jobs/ranktrain/model/layer.h"

#include "scenarios/jobs/ranktrain/wide.h"

#include <string.h>

static bool pool_plan(struct model_layer *l) {
    l->out = (struct layer_shape){
        .channels = l->in.channels, .side = l->in.side / 2, .batch = l->in.batch};
    l->trained = l->bias ? (size_t)l->in.channels : 0;
    l->choices = layer_floats(&l->out);
    return l->in.side > 0 && l->in.side % 2 == 0;
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

static void pool_forward(const struct layer_pass *p) {
    int side = p->l->in.side, half = side / 2, rows = p->l->in.batch * half;
    const float *in = p->in;
    float *out = p->out;
    int32_t *choice = p->choice;
    for (int i = 0; i < p->l->in.channels * rows; i++) {
        pool_row(in, in + side, p->l->bias ? p->trained[i / rows] : 0, out, choice, half);
        in += 2 * side;
        out += half;
        choice += half;
    }
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

static void pool_backward(const struct layer_pass *p) {
    int side = p->l->in.side, half = side / 2, pixels = (int)layer_pixels(&p->l->in);
    const float *out = p->out, *d_out = p->d_out;
    const int32_t *choice = p->choice;
    float *d_in = p->ret_d_in;
    for (int i = 0; i < p->l->in.channels * p->l->in.batch * half; i++) {
        unpool_row(out, choice, d_out, d_in, d_in + side, half);
        d_in += 2 * side;
        out += half;
        choice += half;
        d_out += half;
    }
    for (int c = 0; p->l->bias && c < p->l->in.channels; c++)
        p->ret_d_trained[c] = sum_of(p->ret_d_in + (size_t)c * (size_t)pixels, pixels);
}

const struct layer_kind layer_pool = {
    .name = "pool",
    .plan = pool_plan,
    .forward = pool_forward,
    .backward = pool_backward,
};
