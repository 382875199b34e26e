/* state: all that a training run is at the end of a step; what a checkpoint holds. */
#pragma once

#include "scenarios/jobs/ranktrain/lenet.h"

#include "base/sha256.h"

#include <stdint.h>

struct state {
    uint64_t step; /* updates applied */
    float weights[LENET_PARAMETERS], velocity[LENET_PARAMETERS];
};

/* The model's hash: SHA-256 over the weights, little-endian float32, in the order of lenet.h. */
static inline void state_hash(const struct state *s, char ret[65]) {
    sha256_of(s->weights, sizeof(s->weights), ret);
}
