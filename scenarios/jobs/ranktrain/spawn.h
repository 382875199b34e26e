/* spawn: a program that starts its own ranks on this machine and ends with them. */
#pragma once

#include "scenarios/jobs/ranktrain/options.h"

#include "base/err.h"

/* Starts this program o->spawn times with the same arguments but --spawn, each with a RANK, and waits
 * for all. They meet at localhost:29500 unless MASTER_ADDR and MASTER_PORT say otherwise. SIGTERM
 * and SIGINT go on to them as SIGTERM; when one fails the others are ended. They die when this
 * process does. Returns the exit status of the first that failed (128 + the signal), 0 when none
 * did; -ECANCELED when it was asked to end; or an error with its sentence. */
int spawn_ranks(const struct ranktrain_options *o, char **argv, struct err *err);
