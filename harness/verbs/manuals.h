/* manuals: rankquake's manual pages and what shells complete, from the table of verbs. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "harness/verb.h"

#include <stddef.h>

/* Appends the manual page of a verb; of rankquake itself without one. */
void manuals_put(struct buf *out, const struct verb *v);

/* Appends what can stand where the last of the n words behind "rankquake" stands, as
 * base/completion.h has it. */
void manuals_complete(struct buf *out, const char *const *words, size_t n);

/* All names that explain knows, NULL-ended; a name may come twice. */
const char *const *explain_names(struct arena *a);
