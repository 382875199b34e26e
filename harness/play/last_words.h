/* last_words: the ends of what the programs of a run printed, for people. */
#pragma once

#include "base/sys/folder.h"
#include "harness/plan/plan.h"

#include <stdio.h>

/* Of every node its program's, and its workers' where they have files of their own (observe). only:
 * of that node alone; NULL: of all. */
void last_words_print(const struct plan *p, const struct folder *dir, const char *only, FILE *out);
