/* checks: the table, in alphabetical order. A check is a file that ends in `const struct check
 * check_NAME` and a line here. */
#pragma once

#include "harness/checks/check.h"

#define CHECKS(X)                                                                                  \
    X(agreement)                                                                                   \
    X(fired)                                                                                       \
    X(one_round)                                                                                   \
    X(ranks)

#define X(name) extern const struct check check_##name;
CHECKS(X)
#undef X
