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

enum { STATE_MARK = 17 };

/* The same, as short as it may be to tell weights apart that a fault has changed. */
static inline void state_mark(const struct state *s, char ret[STATE_MARK]) {
    char whole[65];
    state_hash(s, whole);
    for (int i = 0; i < STATE_MARK; i++)
        ret[i] = i < STATE_MARK - 1 ? whole[i] : '\0';
}
