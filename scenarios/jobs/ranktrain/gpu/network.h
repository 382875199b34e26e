/* network: LeNet-5 (lenet.h) as it lies in a GPU's memory, one struct, all shards of a rank side by
 * side.
 *
 * This header is C and CUDA C++. Activations of a convolution are [channel][sample][row][column],
 * all others [sample][feature]; pooled2 is of the second kind, for the dense layers read it. */
#pragma once

#include "scenarios/jobs/ranktrain/gpu/lenet.h"

#include <stdint.h>

enum {
    NETWORK_SHARDS = 12, /* SHARDS of shards.h */
    NETWORK_BATCH = LENET_BATCH,
    NETWORK_PADDED = LENET_SIDE + 4,
    NETWORK_CONV1 = 6 * 25 + 6 /* parameters of the first layer */
};

/* Goes to the device before a step. */
struct network_input {
    float parameters[LENET_PARAMETERS];
    int32_t shards; /* so many are in use */
    uint8_t images[NETWORK_SHARDS][NETWORK_BATCH][LENET_PIXELS];
    uint8_t labels[NETWORK_SHARDS][NETWORK_BATCH];
};

/* Comes back after it. */
struct network_output {
    int64_t sums[LENET_PARAMETERS + 1]; /* over the shards, in fixed point; the last is the loss */
    int32_t bad[NETWORK_SHARDS];        /* a number of this shard is beyond the limit */
    uint8_t classes[NETWORK_SHARDS][NETWORK_BATCH];
};

struct network_shard {
    float input[NETWORK_BATCH * NETWORK_PADDED * NETWORK_PADDED];
    float pooled1[6 * NETWORK_BATCH * 14 * 14], pooled2[NETWORK_BATCH * 16 * 5 * 5];
    int32_t choice1[6 * NETWORK_BATCH * 14 * 14], choice2[NETWORK_BATCH * 16 * 5 * 5];
    float hidden1[NETWORK_BATCH * 120], hidden2[NETWORK_BATCH * 84];
    float logits[NETWORK_BATCH * LENET_CLASSES];
    double losses[NETWORK_BATCH];

    /* Gradients, already cut off where the layer's output was. */
    float d_logits[NETWORK_BATCH * LENET_CLASSES], d_hidden2[NETWORK_BATCH * 84];
    float d_hidden1[NETWORK_BATCH * 120], d_pooled2[NETWORK_BATCH * 16 * 5 * 5];
    float d_pooled1[6 * NETWORK_BATCH * 14 * 14];
    float d_conv1[NETWORK_BATCH][NETWORK_CONV1]; /* of each sample */
    float gradient[LENET_PARAMETERS];
};

struct network {
    struct network_input in;
    struct network_output out;
    struct network_shard shards[NETWORK_SHARDS];
};
