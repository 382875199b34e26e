/* All providers, in alphabetical order. */
#pragma once

#define PROVIDERS(X)                                                                               \
    X(exec)                                                                                        \
    X(slurm)                                                                                       \
    X(ssh)
