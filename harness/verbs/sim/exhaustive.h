/* exhaustive: `sim --exhaustive`, the search of all orders of a small job. */
#pragma once

#include "harness/verbs.h"

/* core: the commit and the hash of what is searched. Returns the exit code; EXIT_INCONCLUSIVE when
 * a limit was reached before all was seen. */
int exhaustive_main(const struct arguments *a, const char *core);
