/* target: the words of `on:`. Private to this room. */
#pragma once

#include "harness/scenario/scenario.h"

/* Fills all of *ret but text and place. Returns 0, or -EINVAL for what is no target; err is a
 * sentence. */
int target_parse(struct arena *a, const char *text, struct target_spec *ret, struct err *err);
