/* network: a model (model.h) as it lies in a GPU's memory, for all shards of a rank side by side.
 *
 * This header is C and CUDA C++. What a shard has of its own, its activations and their gradients,
 * lies in a room of its own, all rooms one after another and alike: whatever here points into one
 * points into the first shard's. Activations are laid out as layer.h says. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { NETWORK_CHANNELS = 3 }; /* of images */

/* What a norm keeps of each channel of a shard, in rows. */
enum { KEPT_MEAN, KEPT_INVERSE, KEPT_FACTOR, KEPT_SHIFT, KEPT_SLOPE, KEPT_OFFSET, KEPT_ROWS };

/* In what a number went wrong. */
enum { WRONG_OUTPUT, WRONG_GRADIENT, WRONG_STATISTICS, WRONG_ROWS };

/* Goes to the device before a step. */
struct network_step {
    int32_t shards; /* so many are in use */
    int32_t learning;
};

struct network {
    struct network_step step;
    int32_t batch, channels, side, classes;
    float mean[NETWORK_CHANNELS], deviation[NETWORK_CHANNELS];
    uint64_t room;   /* floats */
    uint8_t *images; /* of every shard: sample by sample */
    uint8_t *labels;
    float *input; /* in a room, as are these two: */
    float *logits, *d_logits;
    double *losses; /* of every sample of every shard */
    int64_t *loss;  /* the sum of all */
    uint8_t *answers;
    int32_t *bad; /* of every shard: a number is beyond the limit */
};

struct network_layer {
    const struct network *network;
    int32_t channels, side; /* of what comes in; side 1: features */
    int32_t outs, out_side;
    int32_t kernel, stride, padding, bias, relu;
    int32_t trained, running; /* numbers */

    /* In a room. */
    const float *in, *second;
    float *out, *d_out, *kept;
    int32_t *choice;
    float *d_in, *d_second;       /* NULL: nobody asks */
    int32_t adds_in, adds_second; /* something is there already */

    const float *values, *statistics_so_far; /* trained and running ones */
    float *gradient, *statistics;            /* of one shard after another */
    int64_t *sums, *statistics_sums;         /* of all shards in use, in fixed point */
    int32_t *wrong;                          /* WRONG_ROWS of as many as there are shards */
    int32_t wrong_row;                       /* shards there can be */
};
