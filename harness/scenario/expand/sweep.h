/* sweep: `sweep` and `vars` of a file, worked into its tree before any key is read. Private to this
 * room. */
#pragma once

#include "harness/scenario/reader.h"

key_read_fn sweep_read, vars_read; /* of the keys themselves: nothing is left to be read */

/* Puts one point of the file's sweep into the tree: what the overrides (d->set) chose of it, and
 * for the rest the first. Returns what a name gains by it (".max_restarts-1"), in the arena, ""
 * without a sweep. */
const char *sweep_settle(struct arena *a, struct yaml *root, struct diagnostics *d);

/* Puts the values of `vars` where the tree has "{name}": as they are where that is all of a value,
 * as text within one. */
void vars_apply(struct arena *a, struct yaml *root, struct diagnostics *d);
