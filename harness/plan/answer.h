/* answer: what a program prints that is asked before anything runs. Private to this room. */
#pragma once

#include "harness/plan/plan.h"

#include <stdbool.h>
#include <stddef.h>

/* The first size - 1 bytes of what it prints on its standard output, of nodes with a root file system
 * of their own in there; p NULL: on the host. It has half a minute. False: nothing, or it could not be
 * started. */
bool answer_read(const struct plan *p, const char *const *argv, char *ret, size_t size);
