/* clock: the only place that reads one. All in nanoseconds. */
#pragma once

#include <stdint.h>

int64_t clock_monotonic_ns(void); /* the harness's stamps, the coordinator's timers */
int64_t clock_boottime_ns(void);  /* agent and guard: counts suspend too */
int64_t clock_realtime_ns(void);  /* for people, and for what moves it: never in a decision */
int64_t clock_cpu_ns(void);       /* what this process has used of processors */
