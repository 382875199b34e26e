/* meet: forming the group of a round, and deciding where it goes on. */
#pragma once

#include "scenarios/jobs/ranktrain/trainer.h"

#include "base/err.h"

/* Forms the group and leaves every rank with its part of the state to go on from: that of the
 * newest complete checkpoint that anybody has (checkpoints/resume.h), or the first one of the seed.
 * Whoever keeps checkpoints and has not got that one, has it then. Returns 0, -ECANCELED, or an error
 * whose sentence names the peer or the checkpoint. */
int meet(struct trainer *t, struct err *err);
