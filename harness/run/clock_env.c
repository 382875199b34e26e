/* What makes the programs of a node read its own wall clock: the object lies where our programs are. */
#include "harness/run/programs.h"

#include "faults/mechanism/clock_page.h"

const char *const *clock_env(struct arena *a, const struct node *n, const char *programs,
                             const char *const *env) {
    if (!node_clock_path(n))
        return env;
    return clock_page_env(a, env, arena_printf(a, "%s/" CLOCK_PRELOAD, programs),
                          node_clock_path(n));
}
