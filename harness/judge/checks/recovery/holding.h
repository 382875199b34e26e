/* holding: whether what agents, their helpers, the store and workers hold, and what lies in the
 * directory of checkpoints, gets more with every round. */
#pragma once

#include "harness/judge/checks/recovery/trend.h"

/* What is counted of whoever holds it, by its key in a record "usage" or its "kinds"; few: also a few looks
 * tell a leak of it. The last has no key. */
struct counted {
    const char *key, *one, *many;
    bool by_kind, few;
};
extern const struct counted holding_counted[];
/* How much of it is held; -1: the record does not tell. */
int64_t holding_count(const struct record *usage, const struct counted *c);

/* False, with the finding filled, where something piles up. *ret_judged: of so many agents enough
 * looks were there to tell. */
bool holding_judge(const struct trial *t, struct finding *f, struct readings *r, int *ret_judged);
