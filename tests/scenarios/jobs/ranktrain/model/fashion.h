/* A model for Fashion-MNIST, for tests. */
#pragma once

#include "scenarios/jobs/ranktrain/model/model.h"

#include <stdio.h>
#include <stdlib.h>

enum { FASHION_PIXELS = 28 * 28, FASHION_CLASSES = 10 };

static inline struct model *fashion_model(const char *network, int width) {
    static const struct model_data fashion = {.channels = 1,
                                              .batch = LAYER_BATCH,
                                              .side = 28,
                                              .classes = FASHION_CLASSES,
                                              .mean = {0.2860f},
                                              .deviation = {0.3530f}};
    struct err err = {0};
    struct model *m = model_new(network, width, &fashion, &err);
    if (!m) {
        fprintf(stderr, "%s\n", err.msg);
        abort();
    }
    return m;
}
