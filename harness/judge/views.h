/* views: what checks see of a history, each the part that its sources have said, and what follows
 * from that part. Made once for whoever asks for the same sources. */
#pragma once

#include "harness/judge/checks/check.h"

/* All that any check knows of rounds is said by these. */
enum { VIEWS_OF_ROUNDS = SOURCES(PROBE) | SOURCES(KERNEL) | SOURCES(JOB) };

struct views;

/* Scenario and history must outlive them. */
struct views *views_new(const struct scenario *s, const struct history *h);
struct views *views_free(struct views *v); /* NULL is allowed; returns NULL */

/* The rounds that these sources show. */
const struct rounds *views_rounds(struct views *v, unsigned sources);
/* What a check finds. lost: of the whole history. */
void views_ask(struct views *v, const struct check *c, const struct lost *lost, struct finding *f);
