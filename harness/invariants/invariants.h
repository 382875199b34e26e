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
    X(named)                                                                                       \
    X(newcomers)                                                                                   \
    X(one_round)                                                                                   \
    X(outcome)                                                                                     \
    X(patience)                                                                                    \
    X(pauses)                                                                                      \
    X(progress)                                                                                    \
    X(prompt)                                                                                      \
    X(rank_order)                                                                                  \
    X(ranks)                                                                                       \
    X(remembered)                                                                                  \
    X(restarts)                                                                                    \
    X(roles)                                                                                       \
    X(seats)                                                                                       \
    X(set_back)                                                                                    \
    X(spares)                                                                                      \
    X(stops)                                                                                       \
    X(takeover)                                                                                    \
    X(timing)                                                                                      \
    X(tokens)                                                                                      \
    X(undisturbed)

#define X(name) extern const struct invariant invariant_##name;
INVARIANTS(X)
#undef X

#define X(name) INVARIANT_##name,
enum invariant_place { INVARIANTS(X) INVARIANTS_N }; /* in `invariants` */
#undef X
