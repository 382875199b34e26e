/* agent: the shell around the pure core. It does what the actions of agent/core/rendezvous.h say,
 * and tells the core what came of it; it decides nothing. */
#pragma once

#include "base/err.h"

struct etcd;
struct guard;
struct options;

/* Runs this node's part of the job until it ends. o, g and own (the etcd that o names, where it is
 * this job's own; else NULL) are the caller's; g and own are attached to the agent's loop and may
 * not be used elsewhere, and g is freed. Prints what people must know on stderr, at the end
 * why the job failed. Returns the exit code: 0 the job succeeded, 1 it failed, 64 usage, 69 the
 * store could not be reached, 128 + n left on signal n; or a negative -errno with err when the
 * agent itself could not be set up. */
int agent_run(const struct options *o, struct guard *g, struct etcd *own, struct err *err);
