/* call: what is asked of a call by more than one operator. */
#pragma once

#include "tests/mutate/operator.h"

/* Whether it is one that stands so in the text, and is not a macro's. */
bool call_is_written(const struct source *s, const struct node *n);
/* Whether what is called ends a hold on something or makes it last: locks, syncs, closes. */
bool call_releases(const struct source *s, const struct node *n);
/* Whether it asks only if two things are equal: it does the same with either in the other's place. */
bool call_asks_equality(const struct source *s, const struct node *n);
