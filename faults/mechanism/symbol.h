/* symbol: where a running process has a function that its program or one of its libraries exports. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* 0: it has none of that name. */
uint64_t symbol_find(pid_t pid, const char *name);
