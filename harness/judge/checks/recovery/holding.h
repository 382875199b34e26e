/* holding: whether what agents, their helpers, the store and workers hold, and what lies in the
 * directory of checkpoints, gets more with every round. */
#pragma once

#include "harness/judge/checks/recovery/trend.h"

/* False, with the finding filled, where something piles up. *ret_judged: of so many agents enough
 * looks were there to tell. */
bool holding_judge(const struct trial *t, struct finding *f, struct readings *r, int *ret_judged);
