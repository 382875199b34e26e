/* agent_timer: the file timer of this agent's workers (agent/workers/file_timer.h), where
 * TORCHELASTIC_ENABLE_FILE_TIMER=1 asks for one: it is the only thing by which torchelastic notices
 * a worker that hangs. A worker that is due is killed, which is a failure as any other; processes
 * that are none of the job's are left alone, whatever is written. */
#pragma once

#include "base/err.h"

#include <sys/types.h>

struct agent_timer;
struct guard;
struct loop;

/* *ret NULL: nobody asked for one. The FIFO is where TORCHELASTIC_TIMER_FILE says, else a new one
 * in TMPDIR. Returns 0 or -errno. */
int agent_timer_new(struct loop *l, struct guard *g, struct agent_timer **ret, struct err *err);
struct agent_timer *agent_timer_free(struct agent_timer *t); /* NULL is allowed; returns NULL */

/* NULL is allowed from here on: there is none. */

/* What the workers are to find in TORCHELASTIC_TIMER_FILE; NULL: nothing is said. */
const char *agent_timer_path(const struct agent_timer *t);
/* A new group is about to start. */
void agent_timer_begin(struct agent_timer *t);
/* A worker has ended. Returns why, when it was by its timer and left no word of its own; else the
 * error as it is. */
const char *agent_timer_end(struct agent_timer *t, pid_t pid, const char *error);
