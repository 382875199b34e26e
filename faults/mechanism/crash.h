/* crash: makes a running process crash by itself, as a bug would: it calls abort, or a function at
 * the address 0. A handler that it has for the signal runs first, as it would. */
#pragma once

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

/* signo: SIGABRT, SIGSEGV. core: an empty file, which gets its core when the signal is about to end
 * it (core_file.h), of at most so much memory; -1: none. Returns when it has ended, however it did:
 * 0; -ETIME: it goes on for 5 s; or the errors of seize_exit. */
int crash(pid_t pid, int signo, int core, uint64_t core_bytes_max, struct err *err);
