/* layer: one step of a network: plain data, and how it is computed forward and backward. One file
 * per kind ends in one const struct and has one line in LAYERS, in alphabetical order.
 *
 * Always a shard at a time, eight samples unless said: the shapes of the products, and with them their bits,
 * depend neither on the world size nor on how shards are dealt out. Activations of images lie
 * channel by channel, [channel][sample][row][column]; those behind flatten and average by sample,
 * [sample][feature]. Weights lie as PyTorch's do, [out][in][row][column]. */
#pragma once

#include "scenarios/jobs/ranktrain/model/blas.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAYER_BATCH = 8, LAYER_BATCH_MAX = 64, LAYER_IMAGES = -1, LAYER_NONE = -2 };

struct layer_shape {
    int channels, side; /* of square images; side 0: channels are features of a sample */
    int batch;          /* samples */
};

struct layer_kind;

/* What a network says of a layer, and what plan makes of it. */
struct model_layer {
    const struct layer_kind *kind;
    int input, second; /* the layers before it that it takes, LAYER_IMAGES or (second) LAYER_NONE */
    int channels;      /* that come out, where the layer decides it */
    int kernel, stride, padding;
    bool bias, relu;

    /* Made by plan. */
    struct layer_shape in, out;
    int fan_in;      /* inputs of one output; 0: its parameters are not drawn */
    size_t trained;  /* parameters */
    size_t running;  /* statistics that are gathered while learning and used afterwards */
    size_t kept;     /* floats kept between forward and backward, zero at first */
    size_t choices;  /* whole numbers kept likewise */
    size_t borrowed; /* floats needed during backward alone */

    size_t trained_at, running_at; /* where they begin in the model's values */
};

/* What a layer has in hand while it is computed. */
struct layer_pass {
    const struct model_layer *l;
    const struct blas *blas;
    bool learning;
    const float *in, *second, *trained, *running;
    float *out, *kept;
    int32_t *choice;
    float *ret_statistics; /* of this batch, as many as running; forward, when learning */

    float *d_out; /* the gradient of out; may be changed */
    float *ret_d_trained, *borrowed;
    float *ret_d_in, *ret_d_second; /* NULL: nobody asks */
};

struct layer_kind {
    const char *name;

    /* From in and what the network says. False: the layer cannot take such an input. */
    bool (*plan)(struct model_layer *l);

    void (*forward)(const struct layer_pass *p);
    void (*backward)(const struct layer_pass *p);
};

#define LAYERS(X) X(add) X(average) X(conv) X(dense) X(flatten) X(norm) X(pool)

#define LAYER_DECLARE(name) extern const struct layer_kind layer_##name;
LAYERS(LAYER_DECLARE)
#undef LAYER_DECLARE

static inline size_t layer_pixels(const struct layer_shape *s) {
    return (size_t)s->batch * (size_t)s->side * (size_t)s->side;
}

/* Floats of a batch. */
static inline size_t layer_floats(const struct layer_shape *s) {
    return (size_t)s->channels * (s->side ? layer_pixels(s) : (size_t)s->batch);
}
