/* host_hold: a host is certified by one at a time, whoever it is, and by whichever way they come. Held by a lock on a
 * file of the host, and let go with the process that has it. */
#pragma once

#include "base/err.h"

/* Takes this host; who: told to whoever comes second. Returns a descriptor, whose end lets it go; -EBUSY with who has it in
 * err, -EALREADY where who has it said the same of himself; another -errno with a sentence. */
int host_hold_take(const char *who, struct err *err);
