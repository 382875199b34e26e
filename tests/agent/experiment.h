/* experiment: a test that is a program of its own beside the test's, which forks, kills or stops.
 * It prints "ok" and exits 0, or says what was wrong. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* self: the path of the test's own program; name: the experiment, on that program's command line.
 */
static inline void experiment(const char *self, const char *program, const char *name) {
    char command[512], said[512] = "";
    snprintf(command, sizeof(command), "%.*s%s %s", (int)(strrchr(self, '/') + 1 - self), self,
             program, name);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    if (!fgets(said, sizeof(said), out))
        said[0] = '\0';
    assert_string_equal(said, "ok\n");
    assert_int_equal(pclose(out), 0);
}
