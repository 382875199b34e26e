/* checks: the table, in alphabetical order. A check is a file that ends in `const struct check
 * check_NAME` and a line here. */
#pragma once

#include "harness/judge/checks/check.h"

#define CHECKS(X)                                                                                  \
    X(agent_restarts)                                                                              \
    X(agreement)                                                                                   \
    X(bounds)                                                                                      \
    X(budget)                                                                                      \
    X(checkpoints)                                                                                 \
    X(cleanup)                                                                                     \
    X(communicator)                                                                                \
    X(detect)                                                                                      \
    X(device_memory)                                                                               \
    X(drift)                                                                                       \
    X(epochs)                                                                                      \
    X(exactly_once)                                                                                \
    X(exits)                                                                                       \
    X(fired)                                                                                       \
    X(given)                                                                                       \
    X(goodput)                                                                                     \
    X(grace)                                                                                       \
    X(harness_health)                                                                              \
    X(heal)                                                                                        \
    X(idle)                                                                                        \
    X(job_ran)                                                                                     \
    X(kept)                                                                                        \
    X(leftovers)                                                                                   \
    X(liveness)                                                                                    \
    X(log)                                                                                         \
    X(loss)                                                                                        \
    X(lost_work)                                                                                   \
    X(master)                                                                                      \
    X(model)                                                                                       \
    X(observed)                                                                                    \
    X(one_device)                                                                                  \
    X(one_outcome)                                                                                 \
    X(one_round)                                                                                   \
    X(outcome)                                                                                     \
    X(pace)                                                                                        \
    X(phases)                                                                                      \
    X(probe)                                                                                       \
    X(rank_order)                                                                                  \
    X(ranks)                                                                                       \
    X(recover)                                                                                     \
    X(restart_count)                                                                               \
    X(restarts)                                                                                    \
    X(resume_step)                                                                                 \
    X(resumed_loss)                                                                                \
    X(root_cause)                                                                                  \
    X(said)                                                                                        \
    X(samples)                                                                                     \
    X(saving)                                                                                      \
    X(stop_signals)                                                                                \
    X(survivors)                                                                                   \
    X(weights)                                                                                     \
    X(world_sizes)

#define X(name) extern const struct check check_##name;
CHECKS(X)
#undef X
