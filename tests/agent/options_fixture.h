/* options_fixture: a command line, read as rankrun reads it; for the tests of its options. */
#pragma once

#include "agent/options.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct arena arena;
static struct options o;
static struct err err;

/* The words of a command line, split at spaces. */
static int parse(const char *line) {
    size_t n;
    char **argv = str_split(&arena, line, ' ', &n);
    memset(&o, 0, sizeof(o));
    memset(&err, 0, sizeof(err));
    return options_read(&o, (int)n, argv, &arena, &err);
}

/* After each test: what one of them may have set for the next. */
static int clear(void **state) {
    static const char *const variables[] = {"OMP_NUM_THREADS",
                                            "PET_TEE",
                                            "SLURM_JOB_ID",
                                            "SLURM_RESTART_COUNT",
                                            "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE",
                                            NULL};
    (void)state;
    for (const char *const *v = variables; *v; v++)
        unsetenv(*v);
    arena_fini(&arena);
    return 0;
}

#define TAKEN(line)                                                                                \
    do {                                                                                           \
        if (parse(line) != 0)                                                                      \
            fail_msg("%s", err.msg);                                                               \
    } while (0)

#define REFUSED(line, words)                                                                       \
    do {                                                                                           \
        assert_true(parse(line) < 0);                                                              \
        if (!strstr(err.msg, words))                                                               \
            fail_msg("\"%s\" is not in \"%s\"", words, err.msg);                                   \
    } while (0)
