/* norm: batch norm, and a cut below zero behind it. While learning each shard is normalised by its
 * own samples, so that no gradient depends on who computes which shard; the running mean and
 * variance are updated from the sums over all shards, in fixed point as gradients are. */
#include "scenarios/jobs/ranktrain/model/layer.h"

#include "scenarios/jobs/ranktrain/wide.h"

#include <math.h>

#define EPSILON 1e-5

enum { LANES = 8 };

/* trained: scale[channels], shift[channels]; running and ret_statistics: mean[channels],
 * variance[channels]; kept: the batch's mean and one over its deviation. */
static bool norm_plan(struct model_layer *l) {
    l->out = l->in;
    l->trained = l->running = l->kept = 2 * (size_t)l->in.channels;
    return l->in.side > 0;
}

static double add_lanes(const double lane[LANES]) {
    return ((lane[0] + lane[4]) + (lane[1] + lane[5])) +
           ((lane[2] + lane[6]) + (lane[3] + lane[7]));
}

/* The order of every addition is fixed by the source. */
WIDE static double sum_of(const float *x, size_t n) {
    double lane[LANES] = {0};
    size_t whole = n - n % LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += (double)x[i + (size_t)l];
    for (size_t i = whole; i < n; i++)
        lane[i - whole] += (double)x[i];
    return add_lanes(lane);
}

WIDE static double squares_of(const float *x, size_t n, double mean) {
    double lane[LANES] = {0};
    size_t whole = n - n % LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) {
            double d = (double)x[i + (size_t)l] - mean;
            lane[l] += d * d;
        }
    for (size_t i = whole; i < n; i++)
        lane[i - whole] += ((double)x[i] - mean) * ((double)x[i] - mean);
    return add_lanes(lane);
}

/* Of d and x: the sum of d * (x - mean). */
WIDE static double product_of(const float *d, const float *x, size_t n, double mean) {
    double lane[LANES] = {0};
    size_t whole = n - n % LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += (double)d[i + (size_t)l] * ((double)x[i + (size_t)l] - mean);
    for (size_t i = whole; i < n; i++)
        lane[i - whole] += (double)d[i] * ((double)x[i] - mean);
    return add_lanes(lane);
}

static void measure(const struct layer_pass *p, int channel, double *ret_mean,
                    double *ret_variance) {
    int channels = p->l->in.channels;
    size_t n = layer_pixels(&p->l->in);
    const float *x = p->in + (size_t)channel * n;
    if (!p->learning) {
        *ret_mean = (double)p->running[channel];
        *ret_variance = (double)p->running[channels + channel];
        return;
    }
    *ret_mean = sum_of(x, n) / (double)n;
    double squares = squares_of(x, n, *ret_mean);
    *ret_variance = squares / (double)n;
    p->ret_statistics[channel] = (float)*ret_mean;
    p->ret_statistics[channels + channel] = (float)(squares / (double)(n - 1));
}

WIDE static void apply(const float *in, size_t n, float factor, float shift, bool relu,
                       float *ret_out) {
    for (size_t i = 0; i < n; i++) {
        float v = in[i] * factor + shift;
        ret_out[i] = relu && !(v > 0) ? 0 : v;
    }
}

static void norm_forward(const struct layer_pass *p) {
    int channels = p->l->in.channels;
    size_t n = layer_pixels(&p->l->in);
    for (int c = 0; c < channels; c++) {
        double mean, variance;
        measure(p, c, &mean, &variance);
        double inverse = 1 / sqrt(variance + EPSILON), factor = (double)p->trained[c] * inverse;
        p->kept[c] = (float)mean;
        p->kept[channels + c] = (float)inverse;
        apply(p->in + (size_t)c * n, n, (float)factor,
              (float)((double)p->trained[channels + c] - mean * factor), p->l->relu,
              p->out + (size_t)c * n);
    }
}

WIDE static void cut(const float *out, size_t n, float *d_out) {
    for (size_t i = 0; i < n; i++)
        d_out[i] = out[i] > 0 ? d_out[i] : 0;
}

/* d_in = factor * d - slope * (x - mean) - offset */
WIDE static void spread(const float *d, const float *x, size_t n, float factor, float slope,
                        float mean, float offset, float *ret_d_in) {
    for (size_t i = 0; i < n; i++)
        ret_d_in[i] = factor * d[i] - slope * (x[i] - mean) - offset;
}

static void norm_backward(const struct layer_pass *p) {
    int channels = p->l->in.channels;
    size_t n = layer_pixels(&p->l->in);
    for (int c = 0; c < channels; c++) {
        const float *x = p->in + (size_t)c * n;
        float *d = p->d_out + (size_t)c * n;
        double mean = (double)p->kept[c], inverse = (double)p->kept[channels + c];
        if (p->l->relu)
            cut(p->out + (size_t)c * n, n, d);
        double d_shift = sum_of(d, n), d_scale = product_of(d, x, n, mean) * inverse;
        p->ret_d_trained[c] = (float)d_scale;
        p->ret_d_trained[channels + c] = (float)d_shift;
        if (!p->ret_d_in)
            continue;
        double factor = (double)p->trained[c] * inverse, share = factor / (double)n;
        spread(d, x, n, (float)factor, (float)(share * d_scale * inverse), (float)mean,
               (float)(share * d_shift), p->ret_d_in + (size_t)c * n);
    }
}

const struct layer_kind layer_norm = {
    .name = "norm",
    .plan = norm_plan,
    .forward = norm_forward,
    .backward = norm_backward,
};
