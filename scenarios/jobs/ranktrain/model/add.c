/* add: the sum of two layers' outputs, cut off below zero: where a residual block ends. */
#include "scenarios/jobs/ranktrain/model/layer.h"

#include "scenarios/jobs/ranktrain/wide.h"

static bool add_plan(struct model_layer *l) {
    l->out = l->in;
    return true;
}

WIDE static void add_forward(const struct layer_pass *p) {
    size_t n = layer_floats(&p->l->out);
    const float *a = p->in, *b = p->second;
    for (size_t i = 0; i < n; i++) {
        float v = a[i] + b[i];
        p->out[i] = v > 0 ? v : 0;
    }
}

WIDE static void add_backward(const struct layer_pass *p) {
    size_t n = layer_floats(&p->l->out);
    for (size_t i = 0; i < n; i++) {
        float d = p->out[i] > 0 ? p->d_out[i] : 0;
        p->ret_d_in[i] = d;
        p->ret_d_second[i] = d;
    }
}

const struct layer_kind layer_add = {
    .name = "add",
    .plan = add_plan,
    .forward = add_forward,
    .backward = add_backward,
};
