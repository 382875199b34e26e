/* cache: files that are costly to make, made once per user.
 *
 * They live in $XDG_CACHE_HOME/rankquake, or ~/.cache/rankquake. Of several processes that want the
 * same file at once one makes it while the others wait; a file appears whole or not at all. Where
 * no such directory can be written the file is made in memory, for this process alone. */
#pragma once

#include "base/err.h"

/* Writes the whole file to fd. */
typedef int cache_make_fn(int fd, const void *arg, struct err *err);

/* Returns a descriptor open for reading, or a -errno. name has no slash and stands for the content:
 * what would be different must be named differently. */
int cache_open(const char *name, cache_make_fn *make, const void *arg, struct err *err);
