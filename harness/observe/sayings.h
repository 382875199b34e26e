/* sayings: what rankrun's agents have printed of the job: its rounds, the workers that failed, how it
 * ended, and torchelastic's events (--event-log-handler console). Each such line becomes a record
 * said, of source launcher: a claim, which the check said compares with what was seen.
 *
 * Workers may write into the same file, in the middle of a line too: a line is looked for wherever it
 * begins. Of one program the first two thousand are recorded. What stands behind "[HOST] " is of an
 * agent elsewhere, which this one has started, and not recorded; its node is not heard whole then. */
#pragma once

#include "harness/observe/observe.h"

#include <stddef.h>

/* All that the agent of a node has printed; fd is read from its beginning, 16 MB at most, and stays the
 * caller's. Records what it said, and then the harness's own record heard: how much was looked through.
 * Returns 0, or a negative errno with nothing recorded. */
int sayings_record(struct recorder *rec, const char *node, int fd, struct err *err);
