/* untrusted: `run --untrusted`, for a scenario that somebody else has written: nothing of it is
 * started outside of nodes, nodes see nothing of this host but devices and the caller's directory,
 * and write to neither, and what is secret in the environment is not passed on. */
#pragma once

#include "base/arena.h"
#include "harness/verb.h"

/* sets (NULL-ended) with those that hold whatever the file says; NULL after saying on stderr, for
 * the verb, what is missing or speaks against it. */
const char **untrusted_sets(struct arena *a, const struct verb *v, const char **sets);

/* Takes out of this process's environment all that a program does not need to run. */
void untrusted_clear_environment(void);
