/* budget: which of many scenarios are run when there is only so much time: those that did not pass
 * the last time, then those that show the most kinds of faults in the least time, then the fast ones.
 * How long one takes is what it took the last time (kept beside the results of control runs, by the
 * scenario's name and its file as it is called from the working directory), else a guess from its
 * timeline. */
#pragma once

#include "harness/play/selection.h"

#include <stdio.h>

/* Of one run, with its control run if it had to be made. */
int64_t budget_estimate_ns(const struct selected *l);
/* From its timeline alone, the same on every machine. */
int64_t budget_guess_ns(const struct scenario *s);
/* False: it has not run yet, and what it takes is guessed. */
bool budget_measured(const struct selected *l, int64_t *ret_ns);
/* code: as it ended. */
void budget_note(const struct selected *l, int64_t took_ns,
                 int code); /* a cache that fails costs nothing */
/* Puts them in that order; those that are worth the same stay in theirs. */
void budget_sort(struct selection *s);
/* Marks what is left out of `left_ns` when at most at_once run side by side; to be asked once. */
void budget_choose(struct selection *s, int64_t left_ns, int at_once,
                   int64_t (*runs)(const void *arg, const struct selected *l), const void *arg);
/* Names what was left out; nothing when nothing was. */
void budget_print(const struct selection *s, int64_t budget_ns, FILE *out);
