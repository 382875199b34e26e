/* state: all that a training run is at the end of a step; what a checkpoint holds. */
#pragma once

#include "scenarios/jobs/ranktrain/model/model.h"
#include "scenarios/jobs/ranktrain/optimizer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From lo on and below hi. */
struct state_range {
    size_t lo, hi;
};

/* A rank holds all of it, or of the weights and of each moment a part. */
struct state {
    uint64_t step;          /* updates applied */
    size_t values, trained; /* floats of weights (model.h) and of each moment, of the whole */
    struct state_range held, held_moments; /* what of them is here: [0, values) and [0, trained) */
    int moments;
    float *weights,
        *moment[OPTIMIZER_MOMENTS]; /* one after another in one allocation; weights[0] is
                                                   that of held.lo, moment[i][0] of held_moments.lo */
};

static inline size_t state_range_length(struct state_range r) {
    return r.hi - r.lo;
}

/* All zero: the whole, or a part. */
void state_init(struct state *ret, const struct model *m, const struct optimizer_kind *k);
void state_init_part(struct state *ret, const struct model *m, const struct optimizer_kind *k,
                     struct state_range held, struct state_range held_moments);

/* All of it is here. */
bool state_is_whole(const struct state *s);
void state_fini(struct state *s);
void state_clear(struct state *s); /* all zero again, of step 0 */

/* Of x, which is [at, at + n) of a whole, what lies in `of`, which begins at `to`. */
void state_put(float *to, struct state_range of, size_t at, const float *x, size_t n);

bool state_is_alike(const struct state *a, const struct state *b); /* they hold the same part */

/* Of the same model and optimizer, and the same part of it. */
void state_copy(struct state *dst, const struct state *src);
bool state_is_equal(const struct state *a, const struct state *b);

size_t state_bytes(const struct state *s); /* of the weights and moments that are here */

/* The model's hash: SHA-256 over the weights that are here, little-endian float32, in the order of the model. */
void state_hash(const struct state *s, char ret[65]);

enum { STATE_MARK = 17 };

/* The same, as short as it may be to tell weights apart that a fault has changed. */
void state_mark(const struct state *s, char ret[STATE_MARK]);
