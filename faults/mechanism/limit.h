/* limit: lowers a resource limit of a process, and gives it back what it had. */
#pragma once

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

/* Sets the soft limit `resource` (RLIMIT_*) of the process to this, if that is less. What it was is
 * kept until limit_restore. 0, -EBUSY: it is lowered already, -ENOSPC, or what prlimit(2) says. */
int limit_lower(pid_t pid, int resource, uint64_t to, struct err *err);
/* 0 also when it was not lowered, or the process has ended. */
int limit_restore(pid_t pid, int resource, struct err *err);
