/* flatten: from channels with a batch in each to samples with all their features. */
#include "scenarios/jobs/ranktrain/model/layer.h"

#include <string.h>

static bool flatten_plan(struct model_layer *l) {
    l->out = (struct layer_shape){.channels = l->in.channels * l->in.side * l->in.side,
                                  .batch = l->in.batch};
    return l->in.side > 0;
}

static void flatten_forward(const struct layer_pass *p) {
    size_t pixels = (size_t)(p->l->in.side * p->l->in.side), features = (size_t)p->l->out.channels;
    size_t batch = (size_t)p->l->in.batch;
    for (size_t c = 0; c < (size_t)p->l->in.channels; c++)
        for (size_t n = 0; n < batch; n++)
            memcpy(p->out + n * features + c * pixels, p->in + (c * batch + n) * pixels,
                   pixels * sizeof(*p->in));
}

static void flatten_backward(const struct layer_pass *p) {
    size_t pixels = (size_t)(p->l->in.side * p->l->in.side), features = (size_t)p->l->out.channels;
    size_t batch = (size_t)p->l->in.batch;
    for (size_t c = 0; c < (size_t)p->l->in.channels; c++)
        for (size_t n = 0; n < batch; n++)
            memcpy(p->ret_d_in + (c * batch + n) * pixels, p->d_out + n * features + c * pixels,
                   pixels * sizeof(*p->d_out));
}

const struct layer_kind layer_flatten = {
    .name = "flatten",
    .plan = flatten_plan,
    .forward = flatten_forward,
    .backward = flatten_backward,
};
