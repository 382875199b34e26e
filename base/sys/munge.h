/* munge: a text that only processes of the same user can open, on any host that shares the key of
 * the MUNGE daemon, as the hosts of a Slurm cluster do (libmunge, munge_encode(3)). Not linked:
 * libmunge is loaded when it is first asked for. A call waits for the daemon of this host, which
 * answers within milliseconds, or is not there. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* Appends the credential, printable ASCII. -ENOENT: there is no libmunge here, or rankrun was built
 * without its header; -EIO: the daemon does not answer or refuses, with its words. */
int munge_seal(const char *text, struct buf *ret, struct err *err);
/* Appends what was sealed, however long ago and however often it was opened. -EPERM: another user
 * sealed it, or it is for another user; -ENOENT, -EIO: as above. */
int munge_open(const char *credential, struct buf *ret, struct err *err);
