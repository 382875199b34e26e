/* optimizer: how sums of gradients change the parameters, the same bits on every rank. A row of a
 * table for each; sgd with momentum and Adam (Kingma and Ba 2014). */
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum { OPTIMIZER_MOMENTS = 2 };

struct optimizer;

struct optimizer_kind {
    const char *name;
    double lr; /* unless said */

    /* What it keeps of each parameter: files of these names in a checkpoint. NULL: no more. */
    const char *moments[OPTIMIZER_MOMENTS + 1];

    /* gradients: sums over all samples, in fixed point; scale makes a mean of one. step: from 1. */
    void (*step)(const struct optimizer *o, const int64_t *sums, size_t n, double scale,
                 uint64_t step, float *values, float *const moments[OPTIMIZER_MOMENTS]);
};

struct optimizer {
    const struct optimizer_kind *kind;
    float lr, momentum; /* momentum: of sgd */
};

/* By its name; NULL and a sentence that lists them. */
const struct optimizer_kind *optimizer_find(const char *name, struct err *err);

/* How many moments it keeps. */
int optimizer_moments(const struct optimizer_kind *k);

/* The update of a step: of n trained values by the optimizer, and the running statistics behind
 * them, values in all, moved by a tenth towards the mean of the batches'. samples and batches are
 * those that were summed. */
struct optimizer_update {
    const int64_t *sums;
    size_t trained, values;
    unsigned samples, batches;
    uint64_t step; /* from 1 */
};

void optimizer_step(const struct optimizer *o, const struct optimizer_update *u, float *values,
                    float *const moments[OPTIMIZER_MOMENTS]);
