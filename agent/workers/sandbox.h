/* sandbox: the system calls that a job of --sandbox is refused, with EPERM: no training worker
 * needs them, and they would change the machine, other processes or the kernel.
 * docs/torchrun.md lists them.
 *
 * The filter is made once, by libseccomp (loaded then); confinement.h enters it. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* The names of the calls that are refused whatever their arguments, NULL-ended. */
const char *const *sandbox_refused(void);

/* Appends the filter, an array of struct sock_filter. -ENOENT: libseccomp is not here. */
int sandbox_make(struct buf *ret, struct err *err);
