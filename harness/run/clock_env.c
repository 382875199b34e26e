/* What makes the programs of a node read its own wall clock: the object that stands before the C
 * library, behind those that the user wants, and where the page is that it reads. */
#include "harness/run/programs.h"

#include "base/str.h"
#include "faults/mechanism/clock_page.h"

#include <string.h>

static const char preload[] = "LD_PRELOAD=";

const char *const *clock_env(struct arena *a, const struct node *n, const char *programs,
                             const char *const *env) {
    size_t given = 0, kept = 0;
    if (!node_clock_path(n))
        return env;
    while (env[given])
        given++;
    const char **more = arena_array(a, const char *, given + 3), *users = preload;
    for (size_t i = 0; i < given; i++)
        if (str_starts(env[i], preload))
            users = env[i];
        else
            more[kept++] = env[i];
    more[kept++] = arena_printf(a, "%s%s%s/" CLOCK_PRELOAD, users,
                                users[strlen(preload)] ? ":" : "", programs);
    more[kept++] = arena_printf(a, CLOCK_PAGE_VARIABLE "=%s", node_clock_path(n));
    return more;
}
