#include "scenarios/jobs/ranktrain/net/door.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { WATCHED_MAX = 80 };

static int listen_on(int family, int port) {
    int yes = 1, no = 0;
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const struct sockaddr *a = family == AF_INET6 ? (const void *)&v6 : (const void *)&v4;
    socklen_t length = family == AF_INET6 ? sizeof(v6) : sizeof(v4);
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    if (bind(fd, a, length) == 0 && listen(fd, 128) == 0)
        return fd;
    int r = -errno;
    close(fd);
    return r;
}

int door_open(struct door *ret, int port, struct err *err) {
    *ret = (struct door){.listener = listen_on(AF_INET6, port)};
    if (ret->listener < 0 && ret->listener != -EADDRINUSE)
        ret->listener = listen_on(AF_INET, port);
    if (ret->listener >= 0)
        return 0;
    int r = ret->listener;
    ret->listener = -1;
    return err_set(err, r, "listen on port %d", port);
}

void door_close(struct door *d) {
    for (int i = 0; i < d->n; i++)
        link_close(&d->callers[i].fd);
    d->n = 0;
    link_close(&d->listener);
}

static void caller_remove(struct door *d, int i) {
    d->n--;
    memmove(&d->callers[i], &d->callers[i + 1], (size_t)(d->n - i) * sizeof(d->callers[0]));
}

/* The oldest of too many silent callers makes room. */
static void let_in(struct door *d) {
    int fd, yes = 1;
    while ((fd = accept4(d->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (d->n == DOOR_CALLERS) {
            close(d->callers[0].fd);
            caller_remove(d, 0);
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        d->callers[d->n++] = (struct door_caller){.fd = fd};
    }
}

/* Returns 1 when the hello is whole, 0 when more must come, -1 when the caller is none of ours. */
static int listen_to(struct door_caller *c) {
    ssize_t n = recv(c->fd, (char *)&c->hello + c->have, sizeof(c->hello) - c->have, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return -1;
    c->have += (size_t)n;
    if (c->have >= sizeof(c->hello.magic) && c->hello.magic != DOOR_MAGIC)
        return -1;
    return c->have == sizeof(c->hello);
}

static int first_hello(struct door *d, struct door_hello *ret) {
    for (int i = 0; i < d->n; i++) {
        int r = listen_to(&d->callers[i]);
        if (r == 0)
            continue;
        int fd = d->callers[i].fd;
        *ret = d->callers[i].hello;
        caller_remove(d, i--);
        if (r > 0)
            return fd;
        close(fd);
    }
    return -1;
}

int door_wait(struct door *d, const struct link_wait *w, const int *watched, int n_watched,
              struct door_hello *ret, int *ret_gone) {
    for (;;) {
        let_in(d);
        int fd = first_hello(d, ret);
        if (fd >= 0)
            return fd;
        struct pollfd p[2 + DOOR_CALLERS + WATCHED_MAX];
        nfds_t n = 0;
        p[n++] = (struct pollfd){.fd = w->wake_fd, .events = POLLIN};
        p[n++] = (struct pollfd){.fd = d->listener, .events = POLLIN};
        for (int i = 0; i < n_watched && i < WATCHED_MAX; i++)
            p[n++] = (struct pollfd){.fd = watched[i], .events = POLLIN};
        for (int i = 0; i < d->n; i++)
            p[n++] = (struct pollfd){.fd = d->callers[i].fd, .events = POLLIN};
        int r = poll(p, n, deadline_left_ms(w->deadline_ns));
        if (r < 0 && errno != EINTR)
            return -errno;
        if (r > 0 && p[0].revents)
            return -ECANCELED;
        for (int i = 0; r > 0 && i < n_watched && i < WATCHED_MAX; i++)
            if (p[2 + i].revents) {
                *ret_gone = i;
                return -EPIPE;
            }
        if (r == 0 && deadline_now_ns() >= w->deadline_ns)
            return -ETIMEDOUT;
    }
}
