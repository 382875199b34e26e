/* All operators, by the table. */
#include "tests/mutate/operator.h"

#define X(name) &operator_##name,
const struct operator* const operators[] = {
#include "tests/mutate/operators.h"
    NULL};
#undef X
