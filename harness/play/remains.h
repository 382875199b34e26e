/* remains: what harnesses that were killed have left in the folder of the runs, and only `clean`
 * takes away. */
#pragma once

#include <stdio.h>

/* Says in one line, for the verb of this name, that there is a scratch folder without a harness in
 * a run directory of the folder; nothing when there is none. Looks at no runs of a comparison. */
void remains_tell(const char *verb, const char *folder, FILE *out);
