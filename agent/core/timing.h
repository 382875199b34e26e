/* timing: beat, fence, hard and suspect, and the inequalities that make silence a proof.
 *
 * A node that is silent for `suspect` on the coordinator's clock has killed its workers at `fence`
 * on its own, or its kernel has at `hard`. Clocks may differ in rate by 1 % (RHO). Every agent of a
 * job uses the values in the store, never its own. */
#pragma once

#include "agent/core/keys.h"

enum timing_store { TIMING_EMBEDDED, TIMING_ETCD };

/* SIGKILL sent -> last instruction of a worker. */
#define TIMING_KILL_NS 100000000LL

/* "default" or "fast". False for another name. */
bool timing_profile(const char *name, struct timing *ret);

/* Stretches all four so that max_nodes beats stay below what the store bears: 2,000 a second on the
 * embedded one, 500 on etcd. */
void timing_stretch(struct timing *t, int max_nodes, enum timing_store store);

/* Returns 0, or -EINVAL with a sentence that names the two values and the rule they break. */
int timing_check(const struct timing *t, struct err *err);
