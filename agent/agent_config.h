/* agent_config: what the command line and this machine make of a rendezvous_config. */
#pragma once

#include "agent/core/rendezvous.h"
#include "base/arena.h"
#include "base/err.h"

#include "base/sys/loop.h"

#include <stdbool.h>

struct options;

/* The strings of *ret are in the arena or belong to o. store_in_process and hosts_store are the
 * caller's to set. Returns 0, or -EINVAL with the sentence to print before exiting 64: timings that
 * break the rules, an unknown profile; or -errno when the own address cannot be found. */
int agent_config_make(const struct options *o, struct arena *a, struct rendezvous_config *ret,
                      struct err *err);

/* The same, but an endpoint whose name is not known yet, or to which there is no way yet, is tried
 * again until join_timeout, as a store that is not up yet is; people are told once, on stderr. Runs
 * the loop meanwhile. */
int agent_config_await(struct loop *l, const struct options *o, struct arena *a,
                       struct rendezvous_config *ret, struct err *err);

/* Whether what agent_config_make returned may be otherwise a little later. */
bool agent_config_may_come(int rc);
