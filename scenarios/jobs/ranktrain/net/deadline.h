/* deadline: points in time on CLOCK_MONOTONIC, in nanoseconds. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t deadline_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t deadline_in_ns(int64_t after_ns) {
    return deadline_now_ns() + after_ns;
}

/* What poll() may wait: rounded up, so that it never ends too soon and spins; 0 when passed. */
static inline int deadline_left_ms(int64_t deadline_ns) {
    int64_t left = deadline_ns - deadline_now_ns();
    if (left <= 0)
        return 0;
    return left / 1000000 >= 3600 * 1000 ? 3600 * 1000 : (int)((left + 999999) / 1000000);
}
