/* dense: a fully connected layer, cut off below zero where the network says so. */
#include "scenarios/jobs/ranktrain/model/layer.h"

#include <string.h>

/* trained: weights[out][in], bias[out]. */
static bool dense_plan(struct model_layer *l) {
    l->out = (struct layer_shape){.channels = l->channels, .batch = l->in.batch};
    l->fan_in = l->in.channels;
    l->trained = (size_t)l->channels * (size_t)(l->in.channels + 1);
    return l->in.side == 0;
}

static const float *bias_of(const struct layer_pass *p) {
    return p->trained + p->l->out.channels * p->l->in.channels;
}

static void dense_forward(const struct layer_pass *p) {
    int in = p->l->in.channels, outs = p->l->out.channels;
    const float *bias = bias_of(p);
    float *out = p->out;
    blas_product(p->blas, false, p->l->in.batch, outs, in, false, p->in, in, true, p->trained, in,
                 out);
    for (int n = 0; n < p->l->in.batch; n++)
        for (int o = 0; o < outs; o++, out++) {
            float v = *out + bias[o];
            *out = p->l->relu && v < 0 ? 0 : v;
        }
}

static void dense_backward(const struct layer_pass *p) {
    int in = p->l->in.channels, outs = p->l->out.channels;
    float *d_bias = p->ret_d_trained + outs * in, *g = p->d_out;
    const float *out = p->out;
    memset(d_bias, 0, (size_t)outs * sizeof(*d_bias));
    for (int n = 0; n < p->l->in.batch; n++)
        for (int o = 0; o < outs; o++, g++, out++) {
            if (p->l->relu && !(*out > 0))
                *g = 0;
            d_bias[o] += *g;
        }
    blas_product(p->blas, false, outs, in, p->l->in.batch, true, p->d_out, outs, false, p->in, in,
                 p->ret_d_trained);
    if (p->ret_d_in)
        blas_product(p->blas, false, p->l->in.batch, in, outs, false, p->d_out, outs, false,
                     p->trained, in, p->ret_d_in);
}

const struct layer_kind layer_dense = {
    .name = "dense",
    .plan = dense_plan,
    .forward = dense_forward,
    .backward = dense_backward,
};
