/* sandbox: what a worker of --sandbox cannot do. No new privileges (set-user-ID programs give
 * none), and system calls that no training worker needs are refused with EPERM: they would change
 * the machine, other processes or the kernel. docs/torchrun.md lists them.
 *
 * The filter is made by the agent, once, by libseccomp (loaded then), and entered by the worker
 * before its exec (takeoff), which needs two system calls and no library. */
#pragma once

#include "agent/base/buf.h"
#include "agent/base/err.h"

/* The names of the calls that are refused, NULL-ended. */
const char *const *sandbox_refused(void);

/* Appends the filter, an array of struct sock_filter. -ENOENT: libseccomp is not here. */
int sandbox_make(struct buf *ret, struct err *err);
