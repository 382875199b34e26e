/* average: the mean of each channel, one feature of a sample. */
#include "scenarios/jobs/ranktrain/model/layer.h"

static bool average_plan(struct model_layer *l) {
    l->out = (struct layer_shape){.channels = l->in.channels, .batch = l->in.batch};
    return l->in.side > 0;
}

static void average_forward(const struct layer_pass *p) {
    int channels = p->l->in.channels, pixels = p->l->in.side * p->l->in.side;
    const float *in = p->in;
    for (int c = 0; c < channels; c++)
        for (int n = 0; n < p->l->in.batch; n++, in += pixels) {
            double sum = 0;
            for (int i = 0; i < pixels; i++)
                sum += (double)in[i];
            p->out[n * channels + c] = (float)(sum / pixels);
        }
}

static void average_backward(const struct layer_pass *p) {
    int channels = p->l->in.channels, pixels = p->l->in.side * p->l->in.side;
    float *d_in = p->ret_d_in;
    for (int c = 0; c < channels; c++)
        for (int n = 0; n < p->l->in.batch; n++) {
            float d = p->d_out[n * channels + c] / (float)pixels;
            for (int i = 0; i < pixels; i++)
                *d_in++ = d;
        }
}

const struct layer_kind layer_average = {
    .name = "average",
    .plan = average_plan,
    .forward = average_forward,
    .backward = average_backward,
};
