#include "tests/fakes/nccl/sockets.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char complaint[1024];
enum { NAMED = 256 };
static char peers[NAMED][ENDPOINT_NAME];

ncclResult_t complain(ncclResult_t result, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    pthread_mutex_lock(&lock);
    vsnprintf(complaint, sizeof(complaint), fmt, ap);
    pthread_mutex_unlock(&lock);
    va_end(ap);
    return result;
}

const char *last_complaint(void) {
    return complaint;
}

const char *endpoint_name(const struct endpoint *e, char ret[ENDPOINT_NAME]) {
    char host[64], port[16];
    if (getnameinfo(&e->addr.any, e->length, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV))
        snprintf(ret, ENDPOINT_NAME, "?");
    else
        snprintf(ret, ENDPOINT_NAME, "%s<%s>", host, port);
    return ret;
}

/* Who was at the other end: a connection that was reset does not tell any more. */
static void remember(int fd) {
    struct endpoint e = {.length = sizeof(e.addr)};
    char name[ENDPOINT_NAME];
    if (fd >= NAMED || getpeername(fd, &e.addr.any, &e.length) < 0)
        return;
    endpoint_name(&e, name);
    pthread_mutex_lock(&lock);
    memcpy(peers[fd], name, sizeof(name));
    pthread_mutex_unlock(&lock);
}

/* One list of prefixes, or of names after '='; everything else after '^'. */
static bool wanted(const char *list, const char *name) {
    char text[256], *rest = text, *word;
    bool negated = list[0] == '^', exact, found = false;
    list += negated;
    exact = list[0] == '=';
    snprintf(text, sizeof(text), "%s", list + exact);
    while ((word = strsep(&rest, ","))) {
        word[strcspn(word, ":")] = 0;
        if (*word && (exact ? strcmp(name, word) == 0 : strncmp(name, word, strlen(word)) == 0))
            found = true;
    }
    return found != negated;
}

static bool find(const char *list, int family, struct endpoint *ret) {
    struct ifaddrs *all;
    bool found = false;
    if (getifaddrs(&all) < 0)
        return false;
    for (struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
        if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP) ||
            !wanted(list, i->ifa_name))
            continue;
        memset(ret, 0, sizeof(*ret));
        ret->length = family == AF_INET ? sizeof(ret->addr.v4) : sizeof(ret->addr.v6);
        memcpy(&ret->addr, i->ifa_addr, ret->length);
        found = true;
    }
    freeifaddrs(all);
    return found;
}

ncclResult_t socket_place(struct endpoint *ret) {
    const char *list = getenv("NCCL_SOCKET_IFNAME");
    const char *const lists[] = {"^docker,lo", "docker", "lo"};
    if (list && strlen(list) > 1)
        return find(list, AF_INET, ret) || find(list, AF_INET6, ret)
                   ? ncclSuccess
                   : complain(ncclInvalidUsage, "Bootstrap : no socket interface found");
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        if (find(lists[i], AF_INET, ret) || find(lists[i], AF_INET6, ret))
            return ncclSuccess;
    return complain(ncclInvalidUsage, "Bootstrap : no socket interface found");
}

static ncclResult_t failed(const char *what) {
    return complain(ncclSystemError, "Call to %s failed: %s", what, strerror(errno));
}

ncclResult_t socket_listen(struct endpoint *place, int *ret) {
    int fd = socket(place->addr.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return failed("socket");
    if (bind(fd, &place->addr.any, place->length) < 0 || listen(fd, 128) < 0 ||
        getsockname(fd, &place->addr.any, &place->length) < 0) {
        close(fd);
        return failed("bind");
    }
    *ret = fd;
    return ncclSuccess;
}

/* Waits for ever, or for an abort. */
static ncclResult_t ready(struct pollfd *p, nfds_t n, int abort_fd) {
    p[n] = (struct pollfd){.fd = abort_fd, .events = POLLIN};
    while (poll(p, n + 1, -1) < 0)
        if (errno != EINTR)
            return failed("poll");
    return p[n].revents ? ncclInternalError : ncclSuccess;
}

static ncclResult_t ready_one(int fd, short events, int abort_fd) {
    struct pollfd p[2] = {{.fd = fd, .events = events}};
    return ready(p, 1, abort_fd);
}

/* One attempt; *ret_error is why it failed, 0 when it did not. */
static ncclResult_t connect_once(const struct endpoint *to, int abort_fd, int *ret,
                                 int *ret_error) {
    int yes = 1, error = 0;
    socklen_t length = sizeof(error);
    int fd = socket(to->addr.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return failed("socket");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    if (connect(fd, &to->addr.any, to->length) < 0)
        error = errno;
    ncclResult_t r = ncclSuccess;
    if (error == EINPROGRESS) {
        r = ready_one(fd, POLLOUT, abort_fd);
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    }
    *ret_error = error;
    if (r == ncclSuccess && !error) {
        remember(fd);
        *ret = fd;
    } else
        close(fd);
    return r;
}

static int number_of(const char *variable, int absent) {
    const char *value = getenv(variable);
    return value && *value ? atoi(value) : absent;
}

/* A port that is closed, a host that does not answer: again, for a minute with NCCL's numbers. No
 * route: an error at once. */
ncclResult_t socket_connect(const struct endpoint *to, int abort_fd, int *ret) {
    char name[ENDPOINT_NAME];
    int tries = number_of("NCCL_SOCKET_RETRY_CNT", 34);
    int pause = number_of("NCCL_SOCKET_RETRY_SLEEP_MSEC", 100);
    for (int i = 1;; i++) {
        int error = 0;
        ncclResult_t r = connect_once(to, abort_fd, ret, &error);
        if (r != ncclSuccess || error == 0)
            return r;
        if (error != ECONNREFUSED && error != ETIMEDOUT && error != EHOSTUNREACH)
            return complain(ncclSystemError, "socketPollConnect: connect to %s returned %s",
                            endpoint_name(to, name), strerror(error));
        if (i > tries)
            return complain(ncclRemoteError, "socketPollConnect: connect to %s returned %s",
                            endpoint_name(to, name), strerror(error));
        struct pollfd p = {.fd = abort_fd, .events = POLLIN};
        if (poll(&p, 1, pause * i) > 0)
            return ncclInternalError;
    }
}

ncclResult_t socket_accept(int listener, int abort_fd, int *ret) {
    for (;;) {
        int yes = 1, fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
            remember(fd);
            *ret = fd;
            return ncclSuccess;
        }
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            return failed("accept");
        ncclResult_t r = ready_one(listener, POLLIN, abort_fd);
        if (r != ncclSuccess)
            return r;
    }
}

static ncclResult_t lost(int fd, ssize_t n) {
    char name[ENDPOINT_NAME];
    int error = errno;
    pthread_mutex_lock(&lock);
    snprintf(name, sizeof(name), "%s", fd < NAMED ? peers[fd] : "?");
    pthread_mutex_unlock(&lock);
    if (n == 0)
        return complain(ncclRemoteError, "socketProgress: Connection closed by remote peer %s",
                        name);
    return complain(error == ECONNRESET || error == EPIPE || error == ETIMEDOUT ? ncclRemoteError
                                                                                : ncclSystemError,
                    "Call to recv from %s failed: %s", name, strerror(error));
}

/* Moves what goes without waiting. */
static ncclResult_t move(int fd, bool out, char **p, size_t *n) {
    while (*n) {
        ssize_t moved = out ? send(fd, *p, *n, MSG_NOSIGNAL) : recv(fd, *p, *n, 0);
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved < 0 && errno == EAGAIN)
            return ncclSuccess;
        if (moved <= 0)
            return lost(fd, moved);
        *p += moved;
        *n -= (size_t)moved;
    }
    return ncclSuccess;
}

ncclResult_t socket_exchange(int out, const void *p, size_t n, int in, void *q, size_t m,
                             int abort_fd) {
    char *from = (char *)(uintptr_t)p, *to = q;
    for (;;) {
        ncclResult_t r = move(out, true, &from, &n);
        if (r == ncclSuccess)
            r = move(in, false, &to, &m);
        if (r != ncclSuccess || (!n && !m))
            return r;
        struct pollfd f[3] = {{.fd = n ? out : -1, .events = POLLOUT},
                              {.fd = m ? in : -1, .events = POLLIN}};
        r = ready(f, 2, abort_fd);
        if (r != ncclSuccess)
            return r;
    }
}

ncclResult_t socket_send(int fd, const void *p, size_t n, int abort_fd) {
    return socket_exchange(fd, p, n, -1, NULL, 0, abort_fd);
}

ncclResult_t socket_receive(int fd, void *p, size_t n, int abort_fd) {
    return socket_exchange(-1, NULL, 0, fd, p, n, abort_fd);
}

void socket_close(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}
