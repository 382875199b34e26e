/* machine: the settings of the kernel and the devices, closed to a job of --sandbox whose user is
 * root: files that belong to root, so that no filter and no missing capability keeps it from them.
 *
 * In a mount namespace of the job's own /sys, cgroups and the like are read-only, and so is all of
 * /proc that is not of a process; and of /dev only the files work that jobs need: null, zero,
 * random numbers, terminals, accelerators, network cards - no disk, console, keyboard, watchdog,
 * nor what has the machine's memory in it. Everything else is as before, and what the host mounts
 * elsewhere later appears where its mounts propagate (systemd's way). */
#pragma once

#include "base/err.h"

/* For the calling thread, which is the only one, and what it starts from then on. 0 also for a user
 * to whom these files are closed anyway, and in a container that has closed its settings itself and
 * lets nobody mount. After an error something is open, and the rest is closed; err says what. */
int machine_close(struct err *err);
