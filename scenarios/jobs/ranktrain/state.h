/* state: all that a training run is at the end of a step; what a checkpoint holds. */
#pragma once

#include "scenarios/jobs/ranktrain/model/model.h"
#include "scenarios/jobs/ranktrain/optimizer.h"

#include <stdint.h>

struct state {
    uint64_t step;          /* updates applied */
    size_t values, trained; /* floats of weights (model.h) and of each moment */
    int moments;
    float *weights, *moment[OPTIMIZER_MOMENTS]; /* one after another in one allocation */
};

/* All zero. */
void state_init(struct state *ret, const struct model *m, const struct optimizer_kind *k);
void state_fini(struct state *s);

/* Of the same model and optimizer. */
void state_copy(struct state *dst, const struct state *src);
bool state_is_equal(const struct state *a, const struct state *b);

size_t state_bytes(const struct state *s); /* of weights and moments */

/* The model's hash: SHA-256 over the weights, little-endian float32, in the order of the model. */
void state_hash(const struct state *s, char ret[65]);

enum { STATE_MARK = 17 };

/* The same, as short as it may be to tell weights apart that a fault has changed. */
void state_mark(const struct state *s, char ret[STATE_MARK]);
