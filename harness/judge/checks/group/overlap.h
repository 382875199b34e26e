/* overlap: which rounds had a worker that lived on when a later one began. */
#pragma once

#include "harness/history/rounds.h"
#include "harness/judge/checks/spans.h"

struct overlap {
    const struct rounds *rounds;
    struct spans all, incomplete;
};

void overlap_init(struct overlap *o, struct arena *a, const struct rounds *rs);
/* The first round at or behind number `at` (from 0) that came before `later` and outlives it, where
 * not both of them are complete: those were two groups, not two halves of one. NULL: none. */
const struct round *overlap_next(const struct overlap *o, size_t *at, const struct round *later);
