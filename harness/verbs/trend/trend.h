/* trend: the three words of `rankquake history`. Private to this folder. */
#pragma once

#include "harness/verbs.h"

#define TREND_FILE "trend.jsonl"

/* Each returns the exit code; a->files[0] is the word. */
int history_add(const struct arguments *a);
int history_show(const struct arguments *a);
int history_gate(const struct arguments *a);

struct logbook;
/* Reads --file and names what is left out of it, on stderr. 0, or the exit code after saying why
 * not. */
int history_read(const struct arguments *a, struct logbook *ret);
