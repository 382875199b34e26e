/* control_weights: what the workers of the control run told of their weights after each step, kept
 * beside its result, for a disturbed run's to be compared with. Only where the scenario asks for
 * weights is there any. */
#pragma once

#include "base/err.h"
#include "harness/history/history.h"

struct engine;

/* Keeps in dir, a folder of the cache or a run directory, what that history of the control run
 * tells; nothing where it tells none. */
int control_weights_keep(const char *dir, const struct history *h, struct err *err);

/* Makes records of what lies in dir; none where nothing is kept there. */
void control_weights_record(struct engine *e, const char *dir);
