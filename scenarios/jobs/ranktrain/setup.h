/* setup: what a worker brings before it meets anybody: the network, its data, what computes and how
 * the ranks sum. */
#pragma once

#include "scenarios/jobs/ranktrain/trainer.h"

#include "base/err.h"

/* Rank 0 prints what it has found. Returns 0 or an error with its sentence. */
int setup(struct trainer *t, struct err *err);

/* What a model is told of images that come so many at once. */
struct model_data setup_model_data(const struct images_shape *s, int batch);
