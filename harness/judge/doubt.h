/* doubt: whether what a check has found hangs on an order of moments that the clocks of their hosts do
 * not tell.
 *
 * A check compares times, and need not know whose they are. It is asked again of the same history with
 * the clocks of the hosts at other places within their bounds, each at its earliest and its latest
 * against each other and against ours; and, where a bound is wide, at many places in between
 * (stands.h). What it finds everywhere is found. Where it answers otherwise, nobody knows which is
 * true: the answer is unknown, and names the two moments whose order decides it. Where every stamp is
 * the harness's own there is nothing to ask. */
#pragma once

#include "harness/judge/verdict.h"

struct doubt;

/* NULL: nothing is stamped by another clock than ours. Both must outlive it. */
struct doubt *doubt_new(const struct scenario *s, const struct history *h);
struct doubt *doubt_free(struct doubt *d); /* NULL is allowed; returns NULL */
/* The history with every clock in the middle of its bound: what is to be judged first. */
const struct history *doubt_history(const struct doubt *d);
/* found: what each check of the table has found there, in its order; what hangs on the clocks becomes
 * unknown. */
void doubt_cast(struct doubt *d, struct finding *found, const struct lost *lost);
