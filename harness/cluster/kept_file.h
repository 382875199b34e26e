/* kept_file: the file of the run's directory that takes what a fault keeps of its target, such as a core,
 * where the fault runs on another host: it is named there, and not handed over. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Opens it to be written: a plain file, empty, and no link. Returns a descriptor or a -errno. */
int kept_file_open(const char *path, struct err *err);

/* For who hands it over: the name of the open file in ret; and whoever runs the fault as another user may
 * write it, and not read what others have kept. 0 or a -errno. */
int kept_file_name(int fd, bool others, char *ret, size_t size, struct err *err);
