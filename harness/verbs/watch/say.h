/* say: words to a run that takes faults by hand (harness/run/hand.h). */
#pragma once

#include "base/err.h"
#include "base/sys/folder.h"

#include <stdbool.h>
#include <stddef.h>

/* Returns a connected socket, or -ENOENT with the sentence: the run takes nothing by hand. */
int say_connect(const struct folder *run, struct err *err);
/* Sends a line and waits for its answer: its text is left in ret. 1: it was refused, 0: it was done, else
 * a -errno: the run is gone. */
int say_line(int fd, const char *line, char *ret, size_t size, struct err *err);
