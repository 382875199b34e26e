/* listing: the user's command that says which checkpoints are complete, run while the loop goes on.
 *
 * It runs in the directory of the checkpoints, with the caller's environment, and prints their
 * steps, one a line; words after the first of a line, and empty lines, do not count. */
#pragma once

#include "base/sys/loop.h"

#include <stddef.h>

struct listing;

/* steps: in the order printed. error: NULL, or why there is no answer. Called once, after which the
 * listing is gone. */
typedef void listing_fn(void *arg, int round, const int64_t *steps, size_t n, const char *error);

/* A directory that is not there holds none: fn is called at once then. Its standard error goes to
 * log, which stays the caller's. Never fails but by way of fn; NULL: it has been called already. */
struct listing *listing_start(struct loop *l, const char *dir, const char *command, int log,
                              int round, listing_fn *fn, void *arg);
/* Ends it without an answer. NULL is allowed. */
void listing_abandon(struct listing *g);
