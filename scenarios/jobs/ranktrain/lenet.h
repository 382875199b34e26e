/* lenet: LeNet-5 for 28x28 images and ten classes, 61,706 parameters.
 *
 *     conv 5x5, 6 channels, padding 2 - relu - max pool - conv 5x5, 16 - relu - max pool
 *     - dense 120 - relu - dense 84 - relu - dense 10 - cross entropy
 *
 * Always eight samples at a time: the shapes of the products, and with them their bits, depend
 * neither on the world size nor on how shards are dealt out. */
#pragma once

#include "scenarios/jobs/ranktrain/blas.h"

#include <stdint.h>

enum { LENET_BATCH = 8, LENET_SIDE = 28, LENET_PIXELS = 784, LENET_CLASSES = 10 };

/* Where each tensor begins in one array of parameters (and of gradients). */
enum {
    LENET_CONV1_WEIGHTS = 0,
    LENET_CONV1_BIAS = LENET_CONV1_WEIGHTS + 6 * 25,
    LENET_CONV2_WEIGHTS = LENET_CONV1_BIAS + 6,
    LENET_CONV2_BIAS = LENET_CONV2_WEIGHTS + 16 * 150,
    LENET_DENSE1_WEIGHTS = LENET_CONV2_BIAS + 16,
    LENET_DENSE1_BIAS = LENET_DENSE1_WEIGHTS + 120 * 400,
    LENET_DENSE2_WEIGHTS = LENET_DENSE1_BIAS + 120,
    LENET_DENSE2_BIAS = LENET_DENSE2_WEIGHTS + 84 * 120,
    LENET_DENSE3_WEIGHTS = LENET_DENSE2_BIAS + 84,
    LENET_DENSE3_BIAS = LENET_DENSE3_WEIGHTS + 10 * 84,
    LENET_PARAMETERS = LENET_DENSE3_BIAS + 10
};

/* The activations of one batch; about 2 MB, zeroed at first (the padding stays so). */
struct lenet;

struct lenet *lenet_new(void);
struct lenet *lenet_free(struct lenet *l); /* NULL is allowed; returns NULL */

/* Uniform in +-1/sqrt(inputs of the layer), from the seed alone. */
void lenet_init(float parameters[LENET_PARAMETERS], uint64_t seed);

/* The class with the largest output for each image of LENET_PIXELS bytes. */
void lenet_classify(struct lenet *l, const struct blas *b, const float *parameters,
                    const uint8_t *const images[LENET_BATCH], uint8_t ret_classes[LENET_BATCH]);

/* Returns the sum of the losses, ret_gradient its gradient: sums over the batch, not means. */
double lenet_gradient(struct lenet *l, const struct blas *b, const float *parameters,
                      const uint8_t *const images[LENET_BATCH], const uint8_t labels[LENET_BATCH],
                      float ret_gradient[LENET_PARAMETERS]);
