/* confinement: rankrun --sandbox. The agent enters it before it has a guard or a thread, and all
 * that it starts is born into it: nothing is left to which a worker could turn for what it may not
 * do itself. Guard and agent besides are not dumpable, so that their memory and descriptors are
 * nobody's who is not root outside.
 *
 * No new privileges, few capabilities (base/sys/rights.h), for root a machine that is closed
 * (machine.h), refused system calls (sandbox.h); and for the guard with its workers a domain
 * (domain.h). */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* The agent's part, for the calling process with its only thread. Appends to open what does not
 * hold here, as sentences, each with a line feed; mostly none. After an error the process is in it
 * half and should end. */
int confinement_begin(struct buf *open, struct err *err);

/* The guard's part, before its workers; once or often. */
int confinement_divide(struct err *err);
