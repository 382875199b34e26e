/* sha256: FIPS 180-4. Used for model hashes, manifests and cache keys; not for secrets. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sha256 {
    uint32_t h[8];
    uint64_t bytes;
    unsigned char block[64];
};

void sha256_init(struct sha256 *s);
void sha256_update(struct sha256 *s, const void *p, size_t n);
/* Writes 64 lower-case hex digits and a NUL. s is used up. */
void sha256_hex(struct sha256 *s, char ret[65]);
/* All three, of n bytes that are there. */
void sha256_of(const void *p, size_t n, char ret[65]);
