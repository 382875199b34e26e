/* failure: the first failure of a round in words, the same on all agents of the job. */
#pragma once

#include "agent/base/arena.h"
#include "agent/core/keys.h"

/* Half a sentence; "" when there is none. Lives as long as the arena. */
const char *failure_text(struct arena *a, const struct failure *f);

/* The guard has ended, and with it all workers of its node: fills in all but uid and node. */
void failure_of_guard(struct failure *f, int64_t pid, int wait_status);
