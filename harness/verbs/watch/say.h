/* say: words to a run that takes faults by hand (harness/run/hand.h). */
#pragma once

#include "base/err.h"
#include "base/sys/folder.h"

#include <stdbool.h>
#include <stddef.h>

/* Returns a connected socket, or -ENOENT with the sentence: the run takes nothing by hand. */
int say_connect(const struct folder *run, struct err *err);
/* The same of a socket that never blocks; -EAGAIN: too many speak to the run at once. */
int say_connect_now(const struct folder *run, struct err *err);
/* What came as an answer, without its line feed, is taken apart; returns 1 or 0 as say_line. */
int say_read(const char *answer, char *ret, size_t size);
/* Sends a line and waits for its answer: its text is left in ret. 1: it was refused, 0: it was done, else
 * a -errno: the run is gone. */
int say_line(int fd, const char *line, char *ret, size_t size, struct err *err);
