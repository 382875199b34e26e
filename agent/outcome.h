/* outcome: what became of a job, told to the command that started its agents.
 *
 * srun exits with the highest code of its tasks: 137 where one host was lost, though the job went on
 * without it and succeeded. `rankrun outcome srun ... rankrun ...` makes a file, whose name the agents
 * find in their environment; each that ends with the job's outcome adds it there. */
#pragma once

#include "base/err.h"

#define OUTCOME_VARIABLE "RANKRUN_OUTCOME"

/* Runs the command, hands on the signals that ask it to end, and waits for it. dir must be one that
 * the job's hosts share. Returns the code that an agent has told; else the command's own, 128+n where
 * signal n ended it; -EINVAL: the file cannot be made, or the command not be started; others: -errno.
 */
int outcome_run(const char *dir, const char *const *command, struct err *err);

/* Adds a code to the file; one that is not there on this host is said. NULL: nobody asks. */
void outcome_tell(const char *path, int code);
