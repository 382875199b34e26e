/* shared_memory: objects in /dev/shm, and who has them. A semaphore's file is made under another name
 * than it bears: objects are told apart by device and inode, "00:2a 3", as /proc/PID/maps has them. */
#pragma once

#include "base/texts.h"

#include <sys/types.h>

#define SHARED_MEMORY "/dev/shm/"

/* Adds what the process has open or mapped in there, each once. */
void shared_memory_held(pid_t pid, struct texts *ret);
/* What lies at the path; "" where nothing does. Returns ret. */
const char *shared_memory_id(const char *path, char *ret, size_t size);
