/* budget: which of many scenarios are run when there is only so much time: the fast ones first. How
 * long one takes is what it took the last time here (kept beside the results of control runs), else
 * a guess from its timeline. */
#pragma once

#include "harness/play/selection.h"

#include <stdio.h>

/* Of one run, with its control run if it had to be made. */
int64_t budget_estimate_ns(const struct selected *l);
void budget_note(const struct selected *l, int64_t took_ns); /* a cache that fails costs nothing */
/* Puts the fast ones first; those that take as long stay in their order. */
void budget_sort(struct selection *s);
/* Marks what is left out of `left_ns` when at most at_once run side by side; to be asked once. */
void budget_choose(struct selection *s, int64_t left_ns, int at_once,
                   int64_t (*runs)(const void *arg, const struct selected *l), const void *arg);
/* Names what was left out; nothing when nothing was. */
void budget_print(const struct selection *s, int64_t budget_ns, FILE *out);
