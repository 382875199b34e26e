#include "faults/mechanism/bit.h"

#include "base/rand.h"
#include "faults/mechanism/memory.h"

#include <errno.h>

int bit_choose(const struct bit_range *in, int64_t offset, int64_t number, uint64_t seed,
               struct bit *ret, struct err *err) {
    struct bit_range range = *in;
    struct rand rand;
    rand_init(&rand, seed);
    if (!range.bytes && memory_longest(in->pid, &range.address, &range.bytes) != 0)
        return err_say(err, -ESRCH, "process %d has no memory of its own that can be seen",
                       (int)in->pid);
    if (offset >= 0 && (uint64_t)offset >= range.bytes)
        return err_say(err, -EINVAL, "offset: %lld lies behind the %llu bytes that are there",
                       (long long)offset, (unsigned long long)range.bytes);
    uint64_t drawn = rand_below(&rand, range.bytes), which = rand_below(&rand, 8);
    *ret = (struct bit){.pid = range.pid,
                        .address = range.address + (offset < 0 ? drawn : (uint64_t)offset),
                        .number = (unsigned)(number < 0 ? which : (uint64_t)number)};
    return 0;
}

int bit_read(const struct bit *b, unsigned char *ret, struct err *err) {
    int r = memory_read(b->pid, b->address, ret, 1);
    return r ? err_set(err, r, "read memory of process %d", (int)b->pid) : 0;
}

int bit_flip(const struct bit *b, struct err *err) {
    unsigned char byte;
    int r = bit_read(b, &byte, err);
    if (r)
        return r;
    byte ^= (unsigned char)(1U << b->number);
    r = memory_write(b->pid, b->address, &byte, 1);
    return r ? err_set(err, r, "write memory of process %d", (int)b->pid) : 0;
}
