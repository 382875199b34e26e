/* errors: what a function does about the failure of another. */
#pragma once

#include "tests/mutate/operator.h"

/* Whether an if does nothing but end the function, or go on with the next, as something has failed. */
bool errors_are_guarded(const struct source *s, const struct node *n);
