/* Has ranks of a job do one thing at a time. Preloaded into a rank it reports each message before it is sent and each wait for others to the socket PACED
 * (paced.py), and goes on when it is told to. Its clock stands still but for the time that it is told has passed. With PIECES in its place each call moves
 * so many bytes at most, and one of two is interrupted or moves nothing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { FDS = 1024, TEXT = 8192, BEGIN_S = 1000000 };

static int control = -1; /* -1: nobody says when */
static size_t pieces;    /* 0: whole */
static uint32_t drawn = 1;
static long long passed_ms;
static unsigned long long got[FDS]; /* bytes that have come on a connection */
static bool full[FDS];              /* nothing goes there any more */
static char names[FDS][32];

#define NEXT(name)                                                                                 \
    static __typeof__(&name) next;                                                                 \
    if (!next)                                                                                     \
    next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void) {
    const char *fd = getenv("PACED"), *n = getenv("PIECES");
    control = fd ? atoi(fd) : -1;
    pieces = n ? strtoul(n, NULL, 10) : 0;
}

/* The same in each run, and no pattern that a loop may keep to. */
static bool one_of_two(void) {
    drawn = drawn * 1664525 + 1013904223;
    return drawn >> 31;
}

/* Of the thread that trains: what others wait for is their own. */
static bool is_told(void) {
    return control >= 0 && getpid() == gettid();
}

__attribute__((format(printf, 1, 2))) static void report(const char *format, ...) {
    char text[TEXT];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    if (write(control, text, (size_t)n) != n)
        _exit(99); /* who tells is gone */
}

static void hear(char ret[TEXT]) {
    ssize_t n = read(control, ret, TEXT - 1);
    if (n <= 0)
        _exit(99);
    ret[n] = '\0';
}

static int port_of(const struct sockaddr_storage *a) {
    const struct sockaddr_in *v4 = (const void *)a;
    return a->ss_family == AF_INET || a->ss_family == AF_INET6 ? ntohs(v4->sin_port) : -1;
}

/* A connection has a name from its beginning on: "OWN-PEER", by ports; "OWN-0" where somebody listens. Nothing else has one. */
static const char *name(int fd, const struct sockaddr_storage *peer) {
    struct sockaddr_storage own = {0};
    socklen_t n = sizeof(own);
    if (fd >= FDS || !is_told() || getsockname(fd, (struct sockaddr *)&own, &n) < 0 ||
        port_of(&own) < 0)
        return NULL;
    snprintf(names[fd], sizeof(names[fd]), "%d-%d", port_of(&own), peer ? port_of(peer) : 0);
    got[fd] = full[fd] = 0;
    return names[fd];
}

static const char *name_of(int fd) {
    return fd >= 0 && fd < FDS && is_told() && *names[fd] ? names[fd] : NULL;
}

/* ---- time ---- */

int clock_gettime(clockid_t id, struct timespec *ret) {
    NEXT(clock_gettime);
    if (control < 0 || id != CLOCK_MONOTONIC)
        return next(id, ret);
    *ret = (struct timespec){.tv_sec = BEGIN_S + passed_ms / 1000,
                             .tv_nsec = passed_ms % 1000 * 1000000};
    return 0;
}

/* What is full never says that there is room. */
static void take_room(const struct pollfd *p, nfds_t n, struct pollfd *ret) {
    for (nfds_t i = 0; i < n; i++) {
        ret[i] = p[i];
        if (p[i].fd >= 0 && p[i].fd < FDS && full[p[i].fd])
            ret[i].events &= (short)~POLLOUT;
    }
}

static int look(struct pollfd *p, nfds_t n, int timeout) {
    NEXT(poll);
    struct pollfd now[FDS];
    take_room(p, n, now);
    int r = next(now, n, timeout);
    for (nfds_t i = 0; i < n; i++)
        p[i].revents = now[i].revents;
    return r;
}

/* What tells that it was asked to end is no connection. */
static const char *what(int fd) {
    char path[32], is[32] = "";
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return readlink(path, is, sizeof(is) - 1) > 0 && strstr(is, "signalfd") ? "asked" : "other";
}

/* What is waited for: of each connection its name, how much has come on it, and what it is watched for. */
static void tell_wait(const struct pollfd *p, nfds_t n, int timeout) {
    char text[TEXT];
    struct pollfd now[FDS];
    size_t at = (size_t)snprintf(text, sizeof(text), "poll %d", timeout);
    take_room(p, n, now);
    for (nfds_t i = 0; i < n; i++) {
        const char *is = name_of(p[i].fd);
        if (p[i].fd >= 0)
            at += (size_t)snprintf(text + at, sizeof(text) - at, " %s:%llu%s%s",
                                   is ? is : what(p[i].fd), is ? got[p[i].fd] : 0,
                                   now[i].events & (POLLIN | POLLRDHUP) ? ":i" : "",
                                   now[i].events & POLLOUT ? ":o" : "");
    }
    report("%s", text);
}

static int wait_for(struct pollfd *p, nfds_t n, int timeout) {
    for (;;) {
        char text[TEXT];
        tell_wait(p, n, timeout);
        hear(text);
        if (strncmp(text, "pass ", 5) == 0) {
            passed_ms += atoi(text + 5);
            return 0;
        }
        int r = look(p, n, atoi(text));
        if (r != 0)
            return r;
    }
}

int poll(struct pollfd *p, nfds_t n, int timeout) {
    NEXT(poll);
    if (pieces && timeout != 0 && one_of_two()) {
        errno = EINTR;
        return -1;
    }
    if (!is_told() || n > FDS)
        return next(p, n, timeout);
    return timeout == 0 ? look(p, n, 0) : wait_for(p, n, timeout);
}

/* ---- connections ---- */

int listen(int fd, int backlog) {
    NEXT(listen);
    int r = next(fd, backlog);
    const char *is = r == 0 ? name(fd, NULL) : NULL;
    if (is)
        report("listens %s", is);
    return r;
}

int connect(int fd, const struct sockaddr *to, socklen_t n) {
    NEXT(connect);
    struct sockaddr_storage peer = {0};
    int r = next(fd, to, n), e = errno;
    memcpy(&peer, to, n < sizeof(peer) ? n : sizeof(peer));
    const char *is = name(fd, &peer);
    if (is)
        report("calls %s", is);
    errno = e;
    return r;
}

int accept4(int fd, struct sockaddr *a, socklen_t *n, int flags) {
    NEXT(accept4);
    struct sockaddr_storage peer = {0};
    socklen_t length = sizeof(peer);
    int r = is_told() && !a ? next(fd, (struct sockaddr *)&peer, &length, flags)
                            : next(fd, a, n, flags),
        e = errno;
    const char *is = r >= 0 ? name(r, &peer) : NULL;
    if (is)
        report("accepts %s", is);
    errno = e;
    return r;
}

/* Of who closes or shuts it. */
static void leave(int fd) {
    if (name_of(fd))
        report("closes %s", names[fd]);
}

int close(int fd) {
    NEXT(close);
    int r = next(fd), e = errno;
    leave(fd);
    if (name_of(fd))
        *names[fd] = '\0';
    errno = e;
    return r;
}

int shutdown(int fd, int how) {
    NEXT(shutdown);
    int r = next(fd, how), e = errno;
    leave(fd);
    errno = e;
    return r;
}

/* ---- bytes ---- */

/* Whether this call is one that moves nothing. */
static bool is_in_vain(void) {
    if (!pieces || one_of_two())
        return false;
    errno = one_of_two() ? EAGAIN : EINTR;
    return true;
}

static size_t some(struct msghdr *m, struct iovec part[8], size_t most) {
    size_t n = 0, i = 0;
    for (; i < m->msg_iovlen && i < 8 && n < most; i++) {
        part[i] = m->msg_iov[i];
        part[i].iov_len = part[i].iov_len < most - n ? part[i].iov_len : most - n;
        n += part[i].iov_len;
    }
    m->msg_iov = part;
    m->msg_iovlen = i;
    return n;
}

/* False: it is not to be sent, now or ever. */
static bool may_send(int fd, size_t n) {
    char text[TEXT];
    if (!name_of(fd))
        return true;
    if (full[fd]) {
        errno = EAGAIN;
        return false;
    }
    report("sends %s %zu", names[fd], n);
    hear(text);
    if (strcmp(text, "go") == 0)
        return true;
    full[fd] = true;
    errno = EAGAIN;
    return false;
}

static ssize_t sent(int fd, ssize_t n) {
    int e = errno;
    if (name_of(fd))
        report("sent %s %zd", names[fd], n > 0 ? n : 0);
    errno = e;
    return n;
}

static ssize_t came(int fd, ssize_t n) {
    if (n > 0 && name_of(fd))
        got[fd] += (unsigned long long)n;
    return n;
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags) {
    NEXT(sendmsg);
    struct msghdr mine = *m;
    struct iovec part[8];
    size_t n = some(&mine, part, pieces ? pieces : (size_t)-1);
    if (is_in_vain() || !may_send(fd, n))
        return -1;
    return sent(fd, next(fd, &mine, flags));
}

ssize_t send(int fd, const void *p, size_t n, int flags) {
    NEXT(send);
    if (is_in_vain() || !may_send(fd, n))
        return -1;
    return sent(fd, next(fd, p, pieces && pieces < n ? pieces : n, flags));
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags) {
    NEXT(recvmsg);
    struct msghdr mine = *m;
    struct iovec part[8];
    some(&mine, part, pieces ? pieces : (size_t)-1);
    return is_in_vain() ? -1 : came(fd, next(fd, &mine, flags));
}

ssize_t recv(int fd, void *p, size_t n, int flags) {
    NEXT(recv);
    return is_in_vain() ? -1 : came(fd, next(fd, p, pieces && pieces < n ? pieces : n, flags));
}
