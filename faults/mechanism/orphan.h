/* orphan: makes a running process start a child that outlives it: a copy of it with all of its
 * descriptors and memory, in a session of its own, which no signal but SIGKILL ends and which does
 * nothing. Its parent is not told of it by SIGCHLD, nor by wait(2) without __WALL. */
#pragma once

#include "base/err.h"

#include <sys/types.h>

/* name: by which orphan_end knows it. 0; -ENOSPC: there are too many; -EAGAIN: it can start no more;
 * or the errors of seize_exit. */
int orphan_make(pid_t pid, int pidfd, const char *name, struct err *err);
/* Kills those of this process, and waits until they have ended. pid 0: it has ended itself, and its
 * number is not known any more. 0 also if there is none. */
int orphan_end(pid_t pid, const char *name, struct err *err);
