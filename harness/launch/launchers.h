/* launchers: the table, in alphabetical order. */
#pragma once

#include "harness/launch/launcher.h"

#define LAUNCHERS(X)                                                                               \
    X(rankrun)                                                                                     \
    X(slurm)                                                                                       \
    X(template)                                                                                    \
    X(torchrun)

#define X(name) extern const struct launcher launcher_##name;
LAUNCHERS(X)
#undef X
