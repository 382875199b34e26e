/* reducer: sums over the ranks that go on while a rank computes, in a thread of their own, one after
 * another in the order in which they are given to it. */
#pragma once

#include "scenarios/jobs/ranktrain/trainer.h"

#include "base/err.h"

enum { REDUCER_CALLS = 64 }; /* between two waits, at most */

struct reducer;

/* NULL and a sentence when there can be no thread. */
struct reducer *reducer_new(struct trainer *t, struct err *err);

/* Ends what is under way, by aborting the collective where that has not ended by itself. NULL is
 * allowed. */
void reducer_free(struct reducer *r);

/* Sums data[0..n) over the ranks; in use until reducer_wait. */
void reducer_put(struct reducer *r, int64_t *data, size_t n);

/* Until all that was put is summed. Returns 0, or the error of the first that is not. */
int reducer_wait(struct reducer *r, struct err *err);
