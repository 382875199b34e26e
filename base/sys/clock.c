#include "base/sys/clock.h"

#include <time.h>

static int64_t read_clock(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t clock_monotonic_ns(void) {
    return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_boottime_ns(void) {
    return read_clock(CLOCK_BOOTTIME);
}

int64_t clock_realtime_ns(void) {
    return read_clock(CLOCK_REALTIME);
}

int64_t clock_cpu_ns(void) {
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}
