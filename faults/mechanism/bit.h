/* bit: the one bit of a worker's memory that a fault is about, drawn or named. */
#pragma once

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

struct bit {
    pid_t pid;
    uint64_t address;
    unsigned number; /* 0 to 7 */
};

struct bit_range { /* in which it is drawn; bytes 0: in the longest mapping of `pid` */
    pid_t pid;
    uint64_t address, bytes;
};

/* offset, number: < 0: drawn from the seed, so that the same seed finds the same one. 0, -ESRCH,
 * -EINVAL: there is no such offset. */
int bit_choose(const struct bit_range *in, int64_t offset, int64_t number, uint64_t seed,
               struct bit *ret, struct err *err);
/* The byte that it is in. */
int bit_read(const struct bit *b, unsigned char *ret, struct err *err);
int bit_flip(const struct bit *b, struct err *err);
