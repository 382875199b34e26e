/* memory: a folder of ours in /dev/shm, in which the directory of a command lies while it is recorded
 * on processes. Its name follows from the harness whose it is, so `clean` finds what a killed one has
 * left by the note in the run directory, and no file can name another folder. */
#pragma once

#include "base/err.h"
#include "harness/run/presence.h"

#include <stdint.h>

enum { CRASH_MEMORY_PATH_MAX = 128 };

/* The path of the folder that this harness would have. */
void crash_memory_path(const struct presence *p, char ret[CRASH_MEMORY_PATH_MAX]);
/* Makes it, for its owner alone. room: so many bytes must be free there, and in the machine's memory.
 * 0, or a -errno with what is in the way: -ENOTSUP where /dev/shm is no memory, -ENOSPC. */
int crash_memory_make(const struct presence *p, uint64_t room, struct err *err);
/* Whether the folder is there, is the caller's, and its harness was one of this boot and of this pid
 * namespace, and is dead. */
bool crash_memory_is_left(const struct presence *p);
/* With all that is in it; 0 also when it was not there. */
int crash_memory_remove(const struct presence *p, struct err *err);
