/* work: what most modes do alike: a whole state on every rank, its shards computed, and the update
 * of all weights. */
#pragma once

#include "scenarios/jobs/ranktrain/trainer.h"

#include "base/err.h"

int work_open(struct trainer *t, struct err *err);
void work_close(struct trainer *t);

/* Leaves the sums over this rank's shards of a step in trainer.sums. Returns 0, -ECANCELED, or an
 * error of shards_sum. */
int work_compute(struct trainer *t, uint64_t step, struct err *err);

/* Applies trainer.sums, which are those of all ranks, as step state.step + 1. Returns the mean loss. */
double work_update(struct trainer *t);
