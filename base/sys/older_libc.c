/* What libevent asks of a C library of 2022 (glibc 2.36), for programs that must start under older
 * ones: a package that is linked with libevent's archive takes these in its place. Anywhere else
 * nobody asks for them, and they stay out. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

void arc4random_buf(void *to, size_t n);
uint32_t arc4random(void);

/* Never fails: who asks cannot be told. */
void arc4random_buf(void *to, size_t n) {
    char *at = to;
    while (n > 0) {
        ssize_t got = getrandom(at, n, 0);
        if (got < 0 && errno != EINTR)
            abort();
        at += got > 0 ? got : 0;
        n -= got > 0 ? (size_t)got : 0;
    }
}

uint32_t arc4random(void) {
    uint32_t drawn;
    arc4random_buf(&drawn, sizeof(drawn));
    return drawn;
}
