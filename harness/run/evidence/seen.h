/* seen: what proc.h says of processes of this host, of those of other hosts too: as their helper has
 * seen them last (host_process.h). */
#pragma once

#include "base/sys/proc.h"

bool seen_stands_still(pid_t pid);
/* before: of another host's, as it was before the newest fault was done to it. */
bool seen_signals(pid_t pid, bool before, struct proc_signals *ret);
/* As proc_waits_for_byte, or else what its first thread does. False: it has ended, or nobody has looked. */
bool seen_waiting(pid_t pid, struct proc_thread *ret);
