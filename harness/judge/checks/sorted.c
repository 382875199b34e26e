#include "harness/judge/checks/sorted.h"

size_t lower_bound(const void *things, size_t n, size_t size, int64_t (*of)(const void *thing),
                   int64_t least) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (of((const char *)things + middle * size) < least)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
