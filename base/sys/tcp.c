#include "base/sys/tcp.h"

#include "base/rand.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/random.h"

#include <arpa/inet.h>
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

int tcp_endpoint_parse(const char *text, uint16_t port_absent, struct tcp_endpoint *ret,
                       struct err *err) {
    struct tcp_endpoint e = {.port = port_absent};
    const char *host = text, *end = NULL, *port = NULL;
    if (text[0] == '[') {
        host = text + 1;
        end = strchr(host, ']');
        port = end && end[1] == ':' ? end + 2 : NULL;
        if (end && end[1] && !port)
            end = NULL;
    } else {
        end = strrchr(text, ':');
        port = end ? end + 1 : NULL;
        end = end ? end : text + strlen(text);
    }
    int64_t n = e.port;
    size_t len = end ? (size_t)(end - host) : 0;
    if (!len || len >= sizeof(e.host) || (port && !str_to_i64(port, 1, 65535, &n)) ||
        (text[0] != '[' && memchr(host, ':', len)))
        return err_say(err, -EINVAL,
                       "'%s' is no endpoint: give host, host:port or [address]:port with a port "
                       "from 1 to 65535",
                       text);
    memcpy(e.host, host, len);
    e.port = (uint16_t)n;
    *ret = e;
    return 0;
}

static int resolve(const char *host, uint16_t port, int flags, struct addrinfo **ret,
                   struct err *err) {
    char service[8];
    snprintf(service, sizeof(service), "%u", port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};
    int rc = getaddrinfo(host, service, &hints, ret);
    if (rc == 0)
        return 0;
    int code = rc == EAI_SYSTEM ? -errno : -EHOSTUNREACH;
    return err_say(err, code, "cannot resolve host '%s': %s", host, gai_strerror(rc));
}

static uint16_t bound_port(int fd) {
    struct sockaddr_in6 a = {0};
    socklen_t n = sizeof(a);
    if (getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        return 0;
    return ntohs(a.sin6_port); /* the port lies at the same place in sockaddr_in */
}

static int listen_on(const struct addrinfo *ai, int backlog) {
    int one = 1, off = 0;
    FILE_CLOSE int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (ai->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    bool listens = bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, backlog) == 0;
    return listens ? file_keep(&fd) : -errno;
}

int tcp_listen(const char *host, uint16_t port, int backlog, int *ret_fd, uint16_t *ret_port,
               struct err *err) {
    struct addrinfo *list = NULL;
    int rc = resolve(host, port, AI_PASSIVE, &list, err);
    if (rc < 0)
        return rc;
    int fd = -EADDRNOTAVAIL;
    /* Who has the port at one address of the name is found there by whoever asks for it. */
    for (struct addrinfo *ai = list; ai && fd < 0 && fd != -EADDRINUSE; ai = ai->ai_next)
        fd = listen_on(ai, backlog);
    freeaddrinfo(list);
    if (fd < 0)
        return err_set(err, fd, "listen on %s:%u", host, port);
    *ret_fd = fd;
    *ret_port = bound_port(fd);
    return 0;
}

static int bind_family(int family, uint16_t port) {
    int off = 0;
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    FILE_CLOSE int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (family == AF_INET)
        return bind(fd, (struct sockaddr *)&v4, sizeof(v4)) == 0 ? file_keep(&fd) : -errno;
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    return bind(fd, (struct sockaddr *)&v6, sizeof(v6)) == 0 ? file_keep(&fd) : -errno;
}

/* Both families where there is IPv6: a worker may bind either. */
static int bind_everywhere(uint16_t port) {
    int fd = bind_family(AF_INET6, port);
    return fd >= 0 || fd == -EADDRINUSE ? fd : bind_family(AF_INET, port);
}

static void read_ephemeral_range(unsigned *ret_low, unsigned *ret_high) {
    FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    unsigned low = 0, high = 0;
    if (f && fscanf(f, "%u %u", &low, &high) == 2 && low <= high && high < 65536) {
        *ret_low = low;
        *ret_high = high;
    }
    if (f)
        fclose(f);
}

int tcp_reserve_port(int *ret_fd, uint16_t *ret_port, struct err *err) {
    enum { FIRST = 10000, LAST = 65535, TRIES = 256 };
    unsigned low = 32768, high = 60999;
    read_ephemeral_range(&low, &high);
    unsigned below = low > FIRST ? low - FIRST : 0;
    unsigned above = high < LAST ? LAST - (high > FIRST ? high : FIRST - 1) : 0;
    if (below + above == 0) { /* the kernel hands out everything: any port is as good */
        low = high = FIRST;
        above = LAST - FIRST;
    }
    struct rand r;
    rand_init(&r, random_u64());
    uint16_t port = 0;
    int fd = -EADDRINUSE;
    for (int i = 0; i < TRIES && fd == -EADDRINUSE; i++) {
        unsigned n = (unsigned)rand_below(&r, below + above);
        port = (uint16_t)(n < below ? FIRST + n : LAST - (n - below));
        fd = bind_everywhere(port);
    }
    if (fd < 0)
        return err_set(err, fd, "reserve a TCP port outside ip_local_port_range (%u-%u)", low,
                       high);
    *ret_fd = fd;
    *ret_port = port;
    return 0;
}

int tcp_reserve_this_port(uint16_t port, int *ret_fd, struct err *err) {
    int fd = bind_everywhere(port);
    if (fd < 0)
        return err_set(err, fd, "TCP port %u", port);
    *ret_fd = fd;
    return 0;
}

bool tcp_host_is_ours(const char *host) {
    struct addrinfo *list = NULL;
    bool ours = false;
    if (resolve(host, 0, 0, &list, NULL) < 0)
        return false;
    for (struct addrinfo *ai = list; ai && !ours; ai = ai->ai_next) {
        FILE_CLOSE int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ours = fd >= 0 && bind(fd, ai->ai_addr, ai->ai_addrlen) == 0;
    }
    freeaddrinfo(list);
    return ours;
}

static bool is_loopback(const struct sockaddr *a) {
    if (a->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
    return a->sa_family == AF_INET &&
           ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
}

bool tcp_is_loopback(int fd) {
    struct sockaddr_storage own;
    socklen_t n = sizeof(own);
    return getsockname(fd, (struct sockaddr *)&own, &n) == 0 &&
           is_loopback((const struct sockaddr *)&own);
}

bool tcp_number_is_loopback(const char *addr) {
    return str_starts(addr, "127.") || str_eq(addr, "::1");
}

bool tcp_name_is_hidden(const char *host) {
    struct addrinfo *list = NULL;
    bool hidden = true;
    if (strcasestr(host, "localhost") || resolve(host, 0, 0, &list, NULL) < 0)
        return false;
    for (struct addrinfo *ai = list; ai; ai = ai->ai_next)
        hidden = hidden && is_loopback(ai->ai_addr);
    freeaddrinfo(list);
    if (!hidden || resolve(host, 0, AI_NUMERICHOST, &list, NULL) < 0)
        return hidden;
    freeaddrinfo(list);
    return false;
}

int tcp_address_towards(const struct tcp_endpoint *e, char ret_addr[TCP_HOST_MAX],
                        struct err *err) {
    struct addrinfo *list = NULL;
    int rc = resolve(e->host, e->port, 0, &list, err);
    if (rc < 0)
        return rc;
    rc = -ENETUNREACH;
    for (struct addrinfo *ai = list; ai && rc != 0; ai = ai->ai_next) {
        struct sockaddr_storage own;
        socklen_t n = sizeof(own);
        FILE_CLOSE int fd = socket(ai->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, ai->ai_addr, ai->ai_addrlen) == 0 &&
            getsockname(fd, (struct sockaddr *)&own, &n) == 0)
            rc = getnameinfo((struct sockaddr *)&own, n, ret_addr, TCP_HOST_MAX, NULL, 0,
                             NI_NUMERICHOST);
    }
    freeaddrinfo(list);
    return rc == 0 ? 0 : err_set(err, -ENETUNREACH, "find a way to %s:%u", e->host, e->port);
}

static int resolve_all(const struct tcp_endpoint *e, int flags, struct tcp_address *ret, int max,
                       struct err *err) {
    struct addrinfo *list = NULL;
    int n = 0, rc = resolve(e->host, e->port, flags, &list, err);
    if (rc < 0)
        return rc;
    for (struct addrinfo *ai = list; ai && n < max; ai = ai->ai_next) {
        assert(ai->ai_addrlen <= sizeof(ret[n].bytes));
        memcpy(ret[n].bytes, ai->ai_addr, ai->ai_addrlen);
        ret[n++].len = ai->ai_addrlen;
    }
    freeaddrinfo(list);
    return n;
}

int tcp_resolve(const struct tcp_endpoint *e, struct tcp_address *ret, int max, struct err *err) {
    return resolve_all(e, 0, ret, max, err);
}

int tcp_resolve_number(const struct tcp_endpoint *e, struct tcp_address *ret, int max) {
    int n = resolve_all(e, AI_NUMERICHOST, ret, max, NULL);
    return n > 0 ? n : 0;
}

int tcp_connect(const struct tcp_address *to, int *ret_fd) {
    const struct sockaddr *a = (const struct sockaddr *)(const void *)to->bytes;
    FILE_CLOSE int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || (connect(fd, a, to->len) < 0 && errno != EINPROGRESS))
        return -errno;
    *ret_fd = file_keep(&fd);
    return 0;
}

int tcp_connected(int fd) {
    int code = 0;
    socklen_t n = sizeof(code);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &n) < 0)
        return -errno;
    return -code;
}

static int end_text(const struct sockaddr_storage *a, socklen_t n, char ret[TCP_ENDS_MAX]) {
    char host[INET6_ADDRSTRLEN + 16], port[8];
    if (getnameinfo((const struct sockaddr *)a, n, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return -EADDRNOTAVAIL;
    bool mapped = strncmp(host, "::ffff:", 7) == 0 && strchr(host, '.');
    bool v6 = !mapped && strchr(host, ':');
    snprintf(ret, TCP_ENDS_MAX, "%s%.46s%s:%.5s", v6 ? "[" : "", mapped ? host + 7 : host,
             v6 ? "]" : "", port);
    return 0;
}

int tcp_ends(int fd, char ret_own[TCP_ENDS_MAX], char ret_peer[TCP_ENDS_MAX]) {
    struct sockaddr_storage own, peer;
    socklen_t own_n = sizeof(own), peer_n = sizeof(peer);
    if (getsockname(fd, (struct sockaddr *)&own, &own_n) < 0 ||
        getpeername(fd, (struct sockaddr *)&peer, &peer_n) < 0)
        return -errno;
    int rc = end_text(&own, own_n, ret_own);
    return rc ? rc : end_text(&peer, peer_n, ret_peer);
}

/* An error is told to who reads first, and an end to everybody after: the state of the connection
 * tells the two apart. */
bool tcp_ended_in_order(int fd) {
    struct tcp_info info = {0};
    socklen_t n = sizeof(info);
    char byte;
    if (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0)
        return false;
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0 &&
           info.tcpi_state == TCP_CLOSE_WAIT;
}

bool tcp_none_arrived(int fd, size_t n) {
    int unacknowledged = 0;
    return ioctl(fd, SIOCOUTQ, &unacknowledged) == 0 && (size_t)unacknowledged >= n;
}

void tcp_close_as_broken(int *fd) {
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    if (*fd < 0)
        return;
    setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(*fd);
    *fd = -1;
}

/* The port lies at the same place in both families' addresses. */
static bool is_connection_of(int fd, uint16_t port) {
    struct sockaddr_in6 own, peer;
    socklen_t own_n = sizeof(own), peer_n = sizeof(peer);
    return getsockname(fd, (struct sockaddr *)&own, &own_n) == 0 &&
           (own.sin6_family == AF_INET || own.sin6_family == AF_INET6) &&
           ntohs(own.sin6_port) == port && getpeername(fd, (struct sockaddr *)&peer, &peer_n) == 0;
}

size_t tcp_count_connections(uint16_t port) {
    FILE_CLOSE_DIR DIR *d = opendir("/proc/self/fd");
    size_t n = 0;
    int64_t fd;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        n += str_to_i64(e->d_name, 0, INT32_MAX, &fd) && is_connection_of((int)fd, port);
    return n;
}

void tcp_bound_silence(int fd, int seconds) {
    int on = 1, third = seconds / 3 > 0 ? seconds / 3 : 1, two = 2, ms = seconds * 1000;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &third, sizeof(third));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &third, sizeof(third));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &two, sizeof(two));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}
