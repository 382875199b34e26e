/* remote_launch: what a host is asked to do by the rankrun that was typed, sent to the standard
 * input of `rankrun remote`: a directory, a command line, an environment. Then each byte is the
 * number of a signal for the agent, and the end of the stream means: stop.
 *
 * It goes through standard input, and not on a command line, because everybody on a host can read
 * command lines, and environments hold secrets. Both ends are of one version, which is said
 * first. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

struct remote_launch {
    const char *dir;
    const char *const *argv; /* NULL-ended */
    const char *const *env;  /* NAME=value, NULL-ended */
    bool plain;              /* argv is a command of its own, looked for in PATH; else an agent's */
};

enum { ERRAND_BYTES_MAX = 16 << 20 };

void remote_launch_write(const struct remote_launch *e, struct buf *ret);
/* Reads one from fd, and no byte more. -EBADMSG: something else was sent. Its strings are in the
 * arena. */
int remote_launch_read(int fd, struct arena *a, struct remote_launch *ret, struct err *err);
/* The caller's variables that mean something on another host too, and one more (NULL: none), in the
 * arena. */
const char *const *remote_launch_environment(struct arena *a, const char *more);
