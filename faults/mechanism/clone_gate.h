/* clone_gate: a running process, all of its threads and what they start can make no more processes,
 * or no more threads: EAGAIN, as where a limit is reached. RLIMIT_NPROC does not bind root, and a
 * cgroup is not ours to make; so the process is made to watch its own calls (call_watch.h) and to
 * leave the watch to us.
 *
 * Such a watch cannot be taken away. When the gate is open it lets all calls pass, asking a thread of
 * ours; and nothing that runs below it gains privileges by an exec, unless it had CAP_SYS_ADMIN. */
#pragma once

#include "base/err.h"

#include <sys/types.h>

enum clone_gate { GATE_PROCESSES = 1, GATE_THREADS = 2 };

/* what: a sum of clone_gate. 0; -EBUSY: it has such a watch already, ours or another; -ENOSPC; or the
 * errors of seize_exit. */
int clone_gate_close(pid_t pid, int pidfd, unsigned what, struct err *err);
/* 0 also when there is none, or the process has ended. */
int clone_gate_open(pid_t pid);
