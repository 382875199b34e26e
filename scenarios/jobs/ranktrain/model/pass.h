/* pass: a batch on its way through a model, forward and backward. */
#pragma once

#include "scenarios/jobs/ranktrain/model/blas.h"
#include "scenarios/jobs/ranktrain/model/model.h"

/* The activations of one batch and their gradients. The model and the library stay the caller's. */
struct pass;

struct pass *pass_new(const struct model *m, const struct blas *b);
struct pass *pass_free(struct pass *p); /* NULL is allowed; returns NULL */

/* Returns the sum of the losses of a batch of images. ret_gradient, as long as the model's values,
 * is its gradient, a sum over the batch and no mean, and behind it the statistics of the batch. */
double pass_gradient(struct pass *p, const float *values, const uint8_t *const *images,
                     const uint8_t *labels, float *ret_gradient);

/* The class with the largest logit for each image, by the running statistics. */
void pass_classify(struct pass *p, const float *values, const uint8_t *const *images,
                   uint8_t *ret_classes);

/* What a layer has computed last, its gradient and its choices; for tests. LAYER_IMAGES: the images
 * as they were given to the first layer. */
struct pass_layer {
    const float *out, *d_out;
    const int32_t *choice;
};
struct pass_layer pass_look(const struct pass *p, int layer);
