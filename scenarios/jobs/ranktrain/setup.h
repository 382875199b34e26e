/* setup: what a worker brings before it meets anybody: the network, its data, what computes and how
 * the ranks sum. */
#pragma once

#include "scenarios/jobs/ranktrain/trainer.h"

#include "base/err.h"

/* Rank 0 prints what it has found. Returns 0 or an error with its sentence. */
int setup(struct trainer *t, struct err *err);
