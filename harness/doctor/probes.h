/* probes: the table, in alphabetical order. */
#pragma once

#include "harness/doctor/probe.h"

#define PROBES(X)                                                                                  \
    X(blas)                                                                                        \
    X(cgroup)                                                                                      \
    X(cores)                                                                                       \
    X(cuda)                                                                                        \
    X(curl)                                                                                        \
    X(cut)                                                                                         \
    X(dataset)                                                                                     \
    X(etcd)                                                                                        \
    X(exit_status)                                                                                 \
    X(fuse)                                                                                        \
    X(gpu)                                                                                         \
    X(kernel)                                                                                      \
    X(kernel_stack)                                                                                \
    X(namespaces)                                                                                  \
    X(nccl)                                                                                        \
    X(priority)                                                                                    \
    X(processes)                                                                                   \
    X(programs)                                                                                    \
    X(ptrace)                                                                                      \
    X(ranktrain_cuda)                                                                              \
    X(rootfs)                                                                                      \
    X(seccomp)                                                                                     \
    X(sockets)                                                                                     \
    X(wire)

#define X(name) extern const struct probe probe_##name;
PROBES(X)
#undef X

extern const struct probe *const probes[]; /* NULL-ended */
