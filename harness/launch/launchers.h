/* launchers: the table, in alphabetical order. */
#pragma once

#include "harness/launch/launcher.h"

#define LAUNCHERS(X)                                                                               \
    X(rankrun)                                                                                     \
    X(slurm)                                                                                       \
    X(template)                                                                                    \
    X(torchrun)

/* Where in each node the configuration of its Slurm lies (cluster.scheduler). */
#define LAUNCHER_SLURM_CONF "/run/slurm/slurm.conf"

#define X(name) extern const struct launcher launcher_##name;
LAUNCHERS(X)
#undef X
