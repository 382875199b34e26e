#include "base/rand.h"

#include <assert.h>

static uint64_t splitmix64(uint64_t *x) {
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t rotl(uint64_t x, int k) {
    return (x << k) | (x >> (64 - k));
}

void rand_init(struct rand *r, uint64_t seed) {
    for (int i = 0; i < 4; i++)
        r->s[i] = splitmix64(&seed);
}

uint64_t rand_u64(struct rand *r) {
    uint64_t *s = r->s, result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

/* 2^64 mod n: what lies below it would make small values likelier. It is less than n, so that a
 * draw of n or more needs no look. */
uint64_t rand_below(struct rand *r, uint64_t n) {
    assert(n > 0);
    uint64_t x = rand_u64(r);
    while (x < n && x < -n % n)
        x = rand_u64(r);
    return x % n;
}

double rand_unit(struct rand *r) {
    return (double)(rand_u64(r) >> 11) * 0x1.0p-53;
}
