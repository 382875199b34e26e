/* A host whose clock stands still until somebody sets it, and whose sockets take little. What a program asks of the time that only goes
 * forward is answered with the nanoseconds in the file PLAYED_CLOCK; what it sends on a connection that came in the kernel keeps only in
 * so far as PLAYED_ROOM says, in bytes. Timers of the kernel know nothing of it. Preloaded into programs whose times are tried to
 * the microsecond (store/timed.py).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *set_to;
static int room;

__attribute__((constructor)) static void find(void) {
    const char *path = getenv("PLAYED_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*set_to), PROT_READ, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        abort(); /* nobody would know what time it is */
    close(fd);
    set_to = page;
    room = getenv("PLAYED_ROOM") ? atoi(getenv("PLAYED_ROOM")) : 0;
}

int clock_gettime(clockid_t id, struct timespec *ret) {
    if (!set_to || (id != CLOCK_MONOTONIC && id != CLOCK_MONOTONIC_COARSE && id != CLOCK_BOOTTIME))
        return (int)syscall(SYS_clock_gettime, id, ret);
    int64_t now = *set_to;
    ret->tv_sec = now / 1000000000;
    ret->tv_nsec = now % 1000000000;
    return 0;
}

int accept4(int listener, struct sockaddr *peer, socklen_t *n, int flags) {
    int fd = (int)syscall(SYS_accept4, listener, peer, n, flags);
    if (fd >= 0 && room)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    return fd;
}
