/* save: when and how the state of a training run is kept. What a checkpoint is and where it lies is
 * checkpoint.h's concern. */
#pragma once

#include "scenarios/jobs/ranktrain/trainer.h"

#include "base/err.h"

/* Called by every rank behind each step, with end when it is the last one that it makes, be it that
 * all are done or that it has been asked to end; the same on all ranks but for end, which one may be
 * asked sooner. Saves when it is time. Returns 0 or an error of checkpoint_save. */
int save_step(struct trainer *t, bool end, struct err *err);
