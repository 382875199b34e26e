/* draw: random numbers from a seed (splitmix64). The same seed gives the same draws on every
 * machine, and nothing in the job draws from anywhere else but for the session id. */
#pragma once

#include <stdint.h>

static inline uint64_t draw_u64(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* In [0, n), n > 0; uniform but for a bias below n / 2^32. */
static inline uint32_t draw_below(uint64_t *state, uint32_t n) {
    return (uint32_t)(((draw_u64(state) >> 32) * n) >> 32);
}

/* Uniform in [0, 1). */
static inline double draw_unit(uint64_t *state) {
    return (double)(draw_u64(state) >> 11) * 0x1p-53;
}

/* A stream of its own for a purpose: streams of one seed have nothing to do with each other. */
static inline uint64_t draw_stream(uint64_t seed, uint64_t purpose) {
    uint64_t state = seed ^ (purpose * UINT64_C(0xd1342543de82ef95));
    return draw_u64(&state);
}
