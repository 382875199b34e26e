/* xids: what NVIDIA's driver has told the kernel's log of its devices since the host was started: Xid errors,
 * by number. Only root, or who may read the log, is shown it. */
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>

struct xid {
    const char *device; /* "PCI:0000:3b:00" */
    int number, times;
    bool of_the_job; /* a program's mistake ends as this, and no hardware's */
};

/* Reads /dev/kmsg, or the file that RANKQUAKE_KMSG names (for tests), as far as it goes, never waiting. One for each device
 * and number, in the arena. Returns how many, or a -errno: nobody may look, or there is no log. */
int xids_read(struct arena *a, struct xid **ret);
