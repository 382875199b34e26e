/* host_questions: the table, in alphabetical order. */
#pragma once

#include "harness/doctor/host_question.h"

#define HOST_QUESTIONS(X)                                                                          \
    X(blas)                                                                                        \
    X(cgroup)                                                                                      \
    X(clock)                                                                                       \
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
    X(scheduler)                                                                                   \
    X(seccomp)                                                                                     \
    X(sockets)                                                                                     \
    X(uptime)                                                                                      \
    X(wire)

#define X(name) extern const struct host_question host_question_##name;
HOST_QUESTIONS(X)
#undef X

extern const struct host_question *const host_questions[]; /* NULL-ended */
