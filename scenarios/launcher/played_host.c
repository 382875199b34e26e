/* A host whose clock stands still until somebody sets it, and whose sockets take little. What a program asks of the time that only goes
 * forward is answered with the nanoseconds in the file PLAYED_CLOCK; what it sends on a connection that came in the kernel keeps only in
 * so far as PLAYED_ROOM says, in bytes. Where PLAYED_TURNS names two FIFOs the program says in the first one, whenever it has nothing to do,
 * when it wants to be woken, and is so by a byte in the second. Timers of the kernel know nothing of all that. Preloaded into programs
 * whose times are tried (store/timed.py, clocked.py).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *set_to;
static int room;
static int tells = -1, wakes = -1;
static pid_t told; /* who says when it is to be woken; its children do not */
static int64_t due = INT64_MAX;
static uint64_t state; /* of what it draws */

static void take_turns(const char *names) {
    char first[4096], second[4096];
    if (!names || sscanf(names, "%4095[^:]:%4095s", first, second) != 2)
        return;
    tells = open(first, O_WRONLY | O_CLOEXEC);
    wakes = open(second, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    told = getpid();
    state = getenv("PLAYED_NUMBER") ? strtoull(getenv("PLAYED_NUMBER"), NULL, 10) : 1;
    unsetenv("PLAYED_TURNS");
}

__attribute__((constructor)) static void find(void) {
    const char *path = getenv("PLAYED_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*set_to), PROT_READ, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        abort(); /* nobody would know what time it is */
    close(fd);
    set_to = page;
    room = getenv("PLAYED_ROOM") ? atoi(getenv("PLAYED_ROOM")) : 0;
    take_turns(getenv("PLAYED_TURNS"));
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

static int wait_for(int epoll, struct epoll_event *events, int n, int ms) {
    return (int)syscall(SYS_epoll_pwait, epoll, events, n, ms, NULL, 8);
}

/* Whose turns are told draws the same each time, but as its number says. */
ssize_t getrandom(void *ret, size_t n, unsigned flags) {
    unsigned char *bytes = ret;
    if (wakes < 0 || getpid() != told)
        return syscall(SYS_getrandom, ret, n, flags);
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005 + 1442695040888963407;
        bytes[i] = (unsigned char)(state >> 56);
    }
    return (ssize_t)n;
}

/* libevent's, with which it waits for less than a millisecond. */
int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old) {
    const struct itimerspec off = {0};
    if (wakes < 0 || flags || getpid() != told)
        return (int)syscall(SYS_timerfd_settime, fd, flags, new, old);
    int64_t ns = (int64_t) new->it_value.tv_sec * 1000000000 + new->it_value.tv_nsec;
    due = ns ? *set_to + ns : INT64_MAX;
    return (int)syscall(SYS_timerfd_settime, fd, 0, &off, old);
}

int epoll_wait(int epoll, struct epoll_event *events, int n, int ms) {
    if (wakes < 0 || ms == 0 || getpid() != told)
        return wait_for(epoll, events, n, ms);
    int came = wait_for(epoll, events, n, 0);
    if (came)
        return came;
    int64_t at = ms < 0 ? due : *set_to + (int64_t)ms * 1000000;
    struct pollfd both[] = {{.fd = epoll, .events = POLLIN}, {.fd = wakes, .events = POLLIN}};
    char byte;
    if (write(tells, &at, sizeof(at)) != (ssize_t)sizeof(at))
        abort();
    if (poll(both, 2, -1) > 0 && both[1].revents && read(wakes, &byte, 1) < 0)
        abort();
    return wait_for(epoll, events, n, 0);
}
