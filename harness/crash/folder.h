/* folder: a state as a directory to look at, and to give to a job. */
#pragma once

#include "base/err.h"
#include "harness/crash/states.h"

/* Writes it into a directory that is there and empty. -ENOTEMPTY, or what a call said: the sentence
 * names the path. */
int crash_folder_write(struct crash_states *s, size_t state, const char *path, struct err *err);
/* The hash that a state with this content has. What is neither directory, file nor symbolic link
 * is refused (-EINVAL). */
int crash_folder_hash(const char *path, char ret[65], struct err *err);
