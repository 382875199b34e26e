/* memory: bytes of another process, read and written from outside: /proc/PID/mem, which asks for the
 * right to trace it. */
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The longest mapping of its own that it may write and no file stands behind. 0 or -ESRCH. */
int memory_longest(pid_t pid, uint64_t *ret_address, uint64_t *ret_bytes);
/* All n bytes: 0, or a -errno. */
int memory_read(pid_t pid, uint64_t address, void *to, size_t n);
int memory_write(pid_t pid, uint64_t address, const void *from, size_t n);
