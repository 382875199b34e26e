/* process faults: signals to a target that is certain to be the one meant. */
#pragma once

#include "faults/target.h"

/* Sends signo; -ESRCH when the target is not running. */
int target_signal(const struct target *t, int signo, struct err *err);
/* Waits until the target has ended, at most some seconds: after SIGKILL only a process that hangs
 * in the kernel takes longer. */
int target_wait_end(const struct target *t, struct err *err);
