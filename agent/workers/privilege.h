/* privilege: what of root's power a job of --sandbox keeps.
 *
 * Root in a container works on files of whoever started it, and registers memory with network
 * cards: it keeps CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID and CAP_IPC_LOCK, where it
 * has them. All other capabilities go, for good. */
#pragma once

#include "agent/base/err.h"

/* For the calling thread and what it starts from then on; no matter who the user is. */
int privilege_drop(struct err *err);
