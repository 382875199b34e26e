/* lenet: LeNet-5 for 28x28 images and ten classes, as the kernels know it: where each tensor begins
 * in the values of the model (networks.c). 61,706 parameters, no statistics. */
#pragma once

#include "scenarios/jobs/ranktrain/model/layer.h"

enum { LENET_BATCH = LAYER_BATCH, LENET_SIDE = 28, LENET_PIXELS = 784, LENET_CLASSES = 10 };

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
