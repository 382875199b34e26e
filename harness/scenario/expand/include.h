/* include: a file that goes on from others: their trees put under its own, before anything else is
 * done with it. Private to this room and the loader. */
#pragma once

#include "harness/scenario/reader.h"

key_read_fn include_ignore; /* of the key itself: nothing is left to be read */

/* The tree of the file with what it includes in it, every value with its own place, or NULL after
 * adding the errors. */
struct yaml *include_read(struct arena *a, const char *file, struct diagnostics *d);
/* Name as seen from the folder of the file that says it; in the arena. */
const char *include_beside(struct arena *a, const char *file, const char *name);
/* What is read next is of this file (d->reading), which p names; false after adding the error that
 * there are too many. */
bool include_begin_file(struct diagnostics *d, const char *file, struct place p);
/* What is included cannot be set from the command line: it has been read by then. */
void include_check(const struct yaml *root, struct diagnostics *d);
