/* pass: a batch on its way through a model, forward and backward. */
#pragma once

#include "scenarios/jobs/ranktrain/model/blas.h"
#include "scenarios/jobs/ranktrain/model/model.h"

/* The activations of one batch and their gradients. The model and the library stay the caller's. */
struct pass;

struct pass *pass_new(const struct model *m, const struct blas *b);
struct pass *pass_free(struct pass *p); /* NULL is allowed; returns NULL */

size_t pass_bytes(const struct pass *p); /* allocated for one batch's activations */

/* Called when the gradient of a layer is whole; from the last to the first. */
struct pass_watch {
    void (*layer)(void *arg, int layer);
    void *arg;
};

/* Returns the sum of the losses of a batch of images. ret_gradient, as long as the model's values,
 * is its gradient, a sum over the batch and no mean, and behind it the statistics of the batch.
 * watch: NULL when nobody does. */
double pass_gradient(struct pass *p, const float *values, const uint8_t *const *images,
                     const uint8_t *labels, float *ret_gradient, const struct pass_watch *watch);

/* The class with the largest logit for each image, by the running statistics. */
void pass_classify(struct pass *p, const float *values, const uint8_t *const *images,
                   uint8_t *ret_classes);

/* The same one layer at a time, for who has not all numbers at hand: begin, every layer forward in
 * its order; then the classes, or the loss, which is that of pass_gradient, and every layer backward
 * in reverse. */
struct pass_values {
    bool learning;
    const float *trained, *running;
    float *ret_statistics; /* of this batch; forward, when learning */
    float *ret_d_trained;  /* backward */
};

void pass_begin(struct pass *p, const uint8_t *const *images);
void pass_forward(struct pass *p, int layer, const struct pass_values *v);
void pass_classes(const struct pass *p, uint8_t *ret_classes);
double pass_loss(struct pass *p, const uint8_t *labels);
void pass_backward(struct pass *p, int layer, const struct pass_values *v);

/* The first layer whose output holds what is not a number; -1: none. */
int pass_first_bad(const struct pass *p);

/* What a layer has computed last, its gradient and its choices; for tests. LAYER_IMAGES: the images
 * as they were given to the first layer. */
struct pass_layer {
    const float *out, *d_out;
    const int32_t *choice;
};
struct pass_layer pass_look(const struct pass *p, int layer);
