/* alone: one agent of the legacy rendezvous in a world that is drawn from a seed: peers that are torchruns, old and new, or
 * rankruns, an etcd whose answers are lost or say something else, workers that end as they like. */
#pragma once

#include "agent/legacy/legacy.h"

/* Plays so many turns; what the agent asks for goes through legacy_step, which may look at it. */
void alone_play(uint64_t seed, int turns);
