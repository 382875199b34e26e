/* node_names: where a scenario speaks of a node, as n2 in "n2/0", "n0,n2|n1" or "http://n2:80": in
 * an entry, the store, the job's command and environment, a probe, an expectation. */
#pragma once

#include "harness/scenario/scenario.h"

bool node_names_has(const struct scenario *s, int node);
/* Nodes below `nodes` are called by the number to[] from now on; all that is new is the arena's. */
void node_names_move(struct arena *a, struct scenario *c, const int *to, int nodes);
