/* calls: of the system, of which one goes wrong, or all of which do less than they were asked for. To be included by one file
 * of a program, whose own they are then. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How much of what a host says is read at once, and more than what is written of it at once. */
enum { CALLS_READ = 16 << 10, CALLS_LINE = 150 };

static struct calls {
    int fails;          /* the pipe2, fork, or whatever is counted down; 0: none */
    int code;           /* its errno */
    bool stops;         /* reads and writes are interrupted every other time, and are short */
    bool wakes;         /* so are polls */
    int breaks;         /* reads of what a host says say so, by this errno; 0: they do not */
    bool for_now;       /* only the first */
    int unheard;        /* writes of more than a line say so, by this errno; 0: they do not */
    const char *self;   /* what /proc/self/exe leads to; NULL: as it is */
    bool lost;          /* there is no such link */
    const char *closed; /* what cannot be opened; NULL: nothing */
    int polled;         /* what was polled last, of the first in its list */
} calls;

static bool calls_fail(void) {
    if (!calls.fails || --calls.fails)
        return false;
    errno = calls.code;
    return true;
}

int pipe2(int ends[2], int flags) {
    if (flags == O_CLOEXEC && calls_fail())
        return -1;
    return (int)syscall(SYS_pipe2, ends, flags);
}

ssize_t readlink(const char *restrict path, char *restrict to, size_t size) {
    if (strcmp(path, "/proc/self/exe") == 0 && calls.lost) {
        errno = ENOENT;
        return -1;
    }
    if (strcmp(path, "/proc/self/exe") == 0 && calls.self) {
        size_t n = strlen(calls.self) < size ? strlen(calls.self) : size;
        memcpy(to, calls.self, n);
        return (ssize_t)n;
    }
    return syscall(SYS_readlink, path, to, size);
}

/* Every other one is interrupted. */
static bool calls_stop(void) {
    static unsigned turns;
    if (!calls.stops || turns++ % 2)
        return false;
    errno = EINTR;
    return true;
}

int open(const char *path, int flags, ...) {
    va_list ap;
    va_start(ap, flags);
    unsigned mode = va_arg(ap, unsigned);
    va_end(ap);
    if (calls.closed && strcmp(path, calls.closed) == 0) {
        errno = EACCES;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* What it was told before stays as it was then. */
int poll(struct pollfd *fds, nfds_t n, int timeout_ms) {
    static unsigned turns;
    struct pollfd *volatile all = fds;
    calls.polled = all[0].fd;
    if (calls.wakes && turns++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    return (int)syscall(SYS_poll, fds, n, timeout_ms);
}

ssize_t read(int fd, void *to, size_t n) {
    if (calls.breaks && n == CALLS_READ) {
        errno = calls.breaks;
        calls.breaks = calls.for_now ? 0 : calls.breaks;
        return -1;
    }
    if (calls_stop())
        return -1;
    return syscall(SYS_read, fd, to, calls.stops && n > 1000 ? 1000 : n);
}

ssize_t write(int fd, const void *from, size_t n) {
    if (calls.unheard && n > CALLS_LINE) {
        errno = calls.unheard;
        return -1;
    }
    if (calls_stop())
        return -1;
    return syscall(SYS_write, fd, from, calls.stops && n > 1000 ? 1000 : n);
}
