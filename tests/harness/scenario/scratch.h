/* scratch: a scenario written to a file, read back, and thrown away. */
#pragma once

#include "base/str.h"
#include "harness/scenario/scenario.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct scratch {
    char path[256];
    struct diagnostics d;
    struct scenario *s;
};

/* Loads text as a file of its own; what came of it is in *ret, to be dropped with scratch_drop. */
static inline void scratch_load_bytes(struct scratch *ret, const void *text, size_t len,
                                      const char *const *set) {
    const char *dir = getenv("TMPDIR");
    *ret = (struct scratch){0};
    snprintf(ret->path, sizeof(ret->path), "%s/scratch-XXXXXX.yaml", dir ? dir : "/tmp");
    int fd = mkstemps(ret->path, 5);
    assert(fd >= 0);
    ssize_t n = write(fd, text, len);
    assert(n == (ssize_t)len);
    (void)n;
    close(fd);
    ret->s = scenario_load(ret->path, set, &ret->d);
}

static inline void scratch_load(struct scratch *ret, const char *text) {
    scratch_load_bytes(ret, text, strlen(text), NULL);
}

static inline void scratch_drop(struct scratch *x) {
    unlink(x->path);
    scenario_free(x->s);
    diagnostics_fini(&x->d);
}

/* Only the messages: without the path, the source lines and the carets. */
static inline void scratch_messages(const struct scratch *x, struct buf *out) {
    struct arena a = {0};
    char **lines = str_split(&a, buf_str(&x->d.out), '\n', NULL);
    for (; *lines; lines++) {
        const char *line = *lines;
        if (str_starts(line, "    ") || !*line)
            continue;
        size_t n = strlen(x->path);
        buf_puts(out, strncmp(line, x->path, n) == 0 ? line + n + 1 : line);
        buf_putc(out, '\n');
    }
    arena_fini(&a);
}
