/* ends: how the ranks of a whole job ended, in the lines that spawn_world prints behind theirs. */
#pragma once

#include <stdio.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* Where a model was printed all have waited for all: whoever was not killed has ended well, and, where its memory is
 * watched, has given back what it had. */
static inline void assert_ended_well(const char *output) {
    int rank, code;
    for (const char *at = output; (at = strstr(at, "\nrank ")); at++)
        if (sscanf(at, "\nrank %d exit %d", &rank, &code) == 2 && code != 0)
            fail_msg("rank %d ended with %d behind:\n%s", rank, code, output);
}
