/* rand: a seeded generator (xoshiro256**, seeded by splitmix64). Same seed, same draws, on every
 * machine. Nothing in the project draws from anywhere else, but for identities (sys/random). */
#pragma once

#include <stdint.h>

struct rand {
    uint64_t s[4];
};

void rand_init(struct rand *r, uint64_t seed);
uint64_t rand_u64(struct rand *r);
/* Uniform in [0, n); n > 0. */
uint64_t rand_below(struct rand *r, uint64_t n);
/* Uniform in [0, 1). */
double rand_unit(struct rand *r);
