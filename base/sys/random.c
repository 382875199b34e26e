#include "base/sys/random.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

uint64_t random_u64(void) {
    uint64_t v = 0;
    ssize_t n;
    do
        n = getrandom(&v, sizeof(v), 0);
    while (n < 0 && errno == EINTR);
    if (n != sizeof(v))
        abort();
    return v;
}
