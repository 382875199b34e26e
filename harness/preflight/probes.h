/* probes: the table, in alphabetical order. */
#pragma once

#define PROBES(X)                                                                                  \
    X(allreduce)                                                                                   \
    X(bandwidth)                                                                                   \
    X(clock)                                                                                       \
    X(gpus)                                                                                        \
    X(leftovers)                                                                                   \
    X(limits)                                                                                      \
    X(nics)                                                                                        \
    X(reach)                                                                                       \
    X(script)                                                                                      \
    X(shared)                                                                                      \
    X(slurm)                                                                                       \
    X(space)                                                                                       \
    X(versions)
