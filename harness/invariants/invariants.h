/* invariants: the table, in alphabetical order. An invariant is a file that ends in `const struct
 * invariant invariant_NAME` and a line here. */
#pragma once

#include "harness/invariants/invariant.h"

#define INVARIANTS(X)                                                                              \
    X(admission)                                                                                   \
    X(agreement)                                                                                   \
    X(bounds)                                                                                      \
    X(certified_once)                                                                              \
    X(contract)                                                                                    \
    X(fencing)                                                                                     \
    X(finished)                                                                                    \
    X(host_last)                                                                                   \
    X(last_call)                                                                                   \
    X(master)                                                                                      \
    X(one_round)                                                                                   \
    X(outcome)                                                                                     \
    X(patience)                                                                                    \
    X(progress)                                                                                    \
    X(rank_order)                                                                                  \
    X(ranks)                                                                                       \
    X(remembered)                                                                                  \
    X(restarts)                                                                                    \
    X(seats)                                                                                       \
    X(spares)                                                                                      \
    X(undisturbed)

#define X(name) extern const struct invariant invariant_##name;
INVARIANTS(X)
#undef X
