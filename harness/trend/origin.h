/* origin: where runs come from, when nobody says it: the commit and the branch as the CI server's
 * environment or else git has them, and what machine this is. */
#pragma once

#include "harness/trend/entry.h"

/* Fills what is NULL, in a. -ENODATA: commit or branch cannot be told, and how to give them. */
int trend_origin_fill(struct trend_origin *o, struct arena *a, struct err *err);
/* "Intel(R) Xeon(R) ... x 2": the processor, and how many of them this process may use; in a. */
const char *trend_origin_machine(struct arena *a);
