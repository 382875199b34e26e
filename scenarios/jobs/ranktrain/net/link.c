#include "scenarios/jobs/ranktrain/net/link.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int link_ready(int fd, short events, const struct link_wait *w) {
    for (;;) {
        struct pollfd p[2] = {{.fd = fd, .events = events}, {.fd = w->wake_fd, .events = POLLIN}};
        int n = poll(p, 2, deadline_left_ms(w->deadline_ns));
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0 && p[1].revents)
            return -ECANCELED;
        if (n > 0)
            return 0;
        if (n == 0 && deadline_now_ns() >= w->deadline_ns)
            return -ETIMEDOUT;
    }
}

int link_connect(const struct link_address *to, const struct link_wait *w) {
    int yes = 1, error = 0;
    socklen_t length = sizeof(error);
    int fd = socket(to->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    int r = connect(fd, (const struct sockaddr *)&to->addr, to->length) < 0 ? -errno : 0;
    if (r == -EINPROGRESS || r == -EINTR)
        r = link_ready(fd, POLLOUT, w);
    if (r == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error)
        r = -error;
    if (r == 0)
        return fd;
    close(fd);
    return r;
}

int link_resolve(const char *host, int port, struct link_address *ret, struct err *err) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list;
    char service[16];
    snprintf(service, sizeof(service), "%d", port);
    int r = getaddrinfo(host, service, &hints, &list);
    if (r != 0)
        return err_say(err, -EAGAIN, "the name %s is not known: %s", host, gai_strerror(r));
    memset(ret, 0, sizeof(*ret));
    memcpy(&ret->addr, list->ai_addr, list->ai_addrlen);
    ret->length = list->ai_addrlen;
    freeaddrinfo(list);
    return 0;
}

static int gone(ssize_t n) {
    if (n == 0 || errno == EPIPE)
        return -ECONNRESET;
    return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

int link_send(int fd, const void *p, size_t n, const struct link_wait *w) {
    const char *q = p;
    while (n) {
        ssize_t sent = send(fd, q, n, MSG_NOSIGNAL);
        if (sent > 0) {
            q += sent;
            n -= (size_t)sent;
            continue;
        }
        int r = gone(sent);
        if (r == 0)
            r = link_ready(fd, POLLOUT, w);
        if (r < 0)
            return r;
    }
    return 0;
}

int link_receive(int fd, void *p, size_t n, const struct link_wait *w) {
    char *q = p;
    while (n) {
        ssize_t got = recv(fd, q, n, 0);
        if (got > 0) {
            q += got;
            n -= (size_t)got;
            continue;
        }
        int r = gone(got);
        if (r == 0)
            r = link_ready(fd, POLLIN, w);
        if (r < 0)
            return r;
    }
    return 0;
}

const char *link_name(const struct link_address *a, char ret[LINK_NAME]) {
    char host[INET6_ADDRSTRLEN] = "?";
    const struct sockaddr_in *v4 = (const void *)&a->addr;
    const struct sockaddr_in6 *v6 = (const void *)&a->addr;
    if (a->addr.ss_family == AF_INET)
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
    else if (a->addr.ss_family == AF_INET6)
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
    snprintf(ret, LINK_NAME, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, link_port_of(a));
    return ret;
}

/* An IPv4 address in the clothes of IPv6 is of no use on a host without IPv6. */
static void unmap(struct link_address *a) {
    const struct sockaddr_in6 *v6 = (const void *)&a->addr;
    if (a->addr.ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        return;
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = v6->sin6_port};
    memcpy(&v4.sin_addr, &v6->sin6_addr.s6_addr[12], sizeof(v4.sin_addr));
    memset(a, 0, sizeof(*a));
    memcpy(&a->addr, &v4, sizeof(v4));
    a->length = sizeof(v4);
}

int link_peer(int fd, struct link_address *ret) {
    memset(ret, 0, sizeof(*ret));
    ret->length = sizeof(ret->addr);
    if (getpeername(fd, (struct sockaddr *)&ret->addr, &ret->length) < 0)
        return -errno;
    unmap(ret);
    return 0;
}

int link_port(int fd) {
    struct link_address a = {.length = sizeof(a.addr)};
    if (getsockname(fd, (struct sockaddr *)&a.addr, &a.length) < 0)
        return -errno;
    return link_port_of(&a);
}

/* The port is at the same place for IPv4 and IPv6. */
int link_port_of(const struct link_address *a) {
    const struct sockaddr_in *v4 = (const void *)&a->addr;
    return ntohs(v4->sin_port);
}

void link_set_port(struct link_address *a, int port) {
    struct sockaddr_in *v4 = (void *)&a->addr;
    v4->sin_port = htons((uint16_t)port);
}

int link_is_loopback(const struct link_address *a) {
    const struct sockaddr_in *v4 = (const void *)&a->addr;
    const struct sockaddr_in6 *v6 = (const void *)&a->addr;
    if (a->addr.ss_family == AF_INET)
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

void link_close(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}
