/* command: from what the user typed to the argv of one worker. */
#pragma once

#include "agent/workers/spec.h"
#include "base/arena.h"

/* Torchrun's rules: `${PYTHON_EXEC:-python3} -u [-m] PROGRAM ARGS`, or with --no-python as it
 * stands; and one of ours: a program that is no .py file and can be executed is run as it is.
 * $RANKRUN_BEFORE_WORKER, a program that runs the command behind it, comes before all of it.
 * ${local_rank} and $local_rank in the arguments become the number, $$ becomes $. NULL-ended, in
 * the arena. */
char **command_make(const struct worker_command *c, int local_rank, struct arena *a);
