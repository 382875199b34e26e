/* scheduled: what the kernel has let the main thread of a process have of the processors. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct scheduled {
    int64_t ran_ns;
    int64_t waited_ns; /* ready to run, while others ran */
};

/* False where the process is gone, or this kernel does not tell (CONFIG_SCHED_INFO). */
bool scheduled_read(pid_t pid, struct scheduled *ret);
