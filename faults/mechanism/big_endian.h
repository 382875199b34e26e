/* big_endian: numbers as they stand in a packet, in the order of the network. */
#pragma once

#include <stdint.h>

static inline uint16_t be16(const unsigned char *p) {
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t be32(const unsigned char *p) {
    return (uint32_t)be16(p) << 16 | be16(p + 2);
}

static inline void put16(unsigned char *p, unsigned v) {
    p[0] = (unsigned char)(v >> 8);
    p[1] = (unsigned char)v;
}

static inline void put32(unsigned char *p, uint32_t v) {
    put16(p, v >> 16);
    put16(p + 2, v & 0xffff);
}
