/* finish: what is left when all steps are done: the test set, the exit barrier, the model's hash. */
#pragma once

#include "scenarios/jobs/ranktrain/trainer.h"

#include "base/err.h"

/* Every rank classifies its share. Rank 0 prints accuracy and hash. Returns 0 or an error. */
int finish(struct trainer *t, struct err *err);
