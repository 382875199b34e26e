/* env: what a worker is told through its environment, torchrun's names and values. */
#pragma once

#include "agent/workers/spec.h"
#include "base/arena.h"

/* NAME=value strings, NULL-ended, in the arena, to be laid over the agent's own environment.
 * error_file: TORCHELASTIC_ERROR_FILE ("" with --log-dir /dev/null). docs/torchrun.md lists them.
 */
char **env_make(const struct worker_spec *s, int local_rank, const char *error_file,
                struct arena *a);
