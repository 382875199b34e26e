/* model: a network described at run time: layers in order and where the parameters of each lie.
 *
 * All parameters lie in one flat buffer, layer by layer in the order of the network; behind them
 * the running statistics of batch norm, likewise. A gradient is as long: behind the slopes of the
 * parameters lie the statistics of its batch. Together they are the model's values; its hash is
 * over them. */
#pragma once

#include "scenarios/jobs/ranktrain/model/layer.h"

#include "base/err.h"

enum { MODEL_NAME = 16, MODEL_CLASSES = 256, MODEL_CHANNELS = 3, MODEL_WIDTH = 1024 };

/* What the data are. */
struct model_data {
    int channels, side, classes;
    int batch;                                             /* samples of a shard */
    float mean[MODEL_CHANNELS], deviation[MODEL_CHANNELS]; /* of a pixel as a share of 255 */
};

struct model {
    char name[MODEL_NAME]; /* of the network */
    int width;             /* channels of its first stage */
    struct model_data data;
    struct model_layer *layers; /* the last one's output are the logits */
    int n;
    size_t trained, values; /* floats: parameters; with the running statistics */
};

/* Makes a network by its name (networks.h); width 0: its own. Returns NULL and a sentence when there
 * is no such network or it cannot take such images. */
struct model *model_new(const char *network, int width, const struct model_data *data,
                        struct err *err);
struct model *model_free(struct model *m); /* NULL is allowed; returns NULL */

/* For networks.c: adds a layer and returns its index. */
int model_add(struct model *m, struct model_layer l);

/* Parameters uniform in +-1/sqrt(inputs of an output), from the seed alone; scales and variances 1,
 * shifts and means 0. */
void model_init(const struct model *m, uint64_t seed, float *ret_values);

/* The same of the values from lo on and below hi: ret[0] is that of lo. */
void model_init_part(const struct model *m, uint64_t seed, size_t lo, size_t hi, float *ret);
