/* disk_over: a command that sees a disk (disk.h) in the place of a directory, and nobody else does.
 *
 * It runs in a mount namespace of its own; of an ordinary user's in a user namespace too, in which
 * he is who he is. What it leaves behind is waited for. The disk is served by a process beside it:
 * it ends, and with it the mount, when the caller does, by SIGKILL too. */
#pragma once

#include "faults/mechanism/disk/disk.h"

struct disk_over {
    const char *dir;
    struct disk_options disk;
    char *const *argv; /* NULL-ended */
};

/* Returns 0, with the wait status of the command in *ret_status (exit code 127 or 126 where it
 * cannot be started, which it has said on stderr), or a -errno; -EFBIG: the command has run, and the
 * record is full. -ENOTSUP: as disk_check. The calling process, which must not have threads, has
 * moved into the namespaces after it. */
int disk_run_over(const struct disk_over *o, int *ret_status, struct err *err);
