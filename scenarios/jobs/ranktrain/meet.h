/* meet: forming the group of a round, and deciding where it goes on. */
#pragma once

#include "scenarios/jobs/ranktrain/trainer.h"

#include "base/err.h"

/* Forms the group and leaves every rank with its part of the state that rank 0 has chosen: that of
 * the newest complete checkpoint, or the first one of the seed. Returns 0, -ECANCELED, or an error
 * whose sentence names the peer or the checkpoint. */
int meet(struct trainer *t, struct err *err);
