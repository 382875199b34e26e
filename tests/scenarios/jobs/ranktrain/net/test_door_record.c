/* Doors and links on a system that is played: each socket and what it is set to, who is let in and who is sent away, each
 * piece that is sent and taken, for what is waited, and what comes of each call that fails. */
#include "tests/played.h"

#include "scenarios/jobs/ranktrain/net/door.h"
#include "scenarios/jobs/ranktrain/net/link.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { WAKE_FD = 900, WATCHED = 901, FDS = 128 };

static struct {
    int64_t now_ns;
    int callers;
    size_t told[FDS]; /* bytes of a hello */
    bool stranger[FDS];
    struct addrinfo info;
    struct sockaddr_storage address;
} net;

static int played_clock(clockid_t id, struct timespec *ret) {
    assert_int_equal(id, CLOCK_MONOTONIC);
    net.now_ns += 1000;
    *ret = (struct timespec){net.now_ns / 1000000000, net.now_ns % 1000000000};
    return 0;
}

static const char *name_of(const struct sockaddr *a, socklen_t n) {
    static char name[INET6_ADDRSTRLEN + 32];
    char host[INET6_ADDRSTRLEN] = "?";
    const struct sockaddr_in *v4 = (const void *)a;
    const struct sockaddr_in6 *v6 = (const void *)a;
    inet_ntop(a->sa_family, a->sa_family == AF_INET ? (const void *)&v4->sin_addr : &v6->sin6_addr,
              host, sizeof(host));
    snprintf(name, sizeof(name), "%s %d, %u bytes", host, ntohs(v4->sin_port), n);
    return name;
}

/* ---- sockets ---- */

static int played_socket(int family, int type, int protocol) {
    if (fails("socket %d, %d, %d", family, type, protocol))
        return -1;
    int fd = played_open_from(draw(2));
    note("  as %d", fd);
    return fd;
}

static int played_set(int fd, int level, int option, const void *value, socklen_t n) {
    int v;
    assert_int_equal(n, sizeof(v));
    memcpy(&v, value, n);
    note("set %d: %d, %d, %d", fd, level, option, v != 0); /* any but 0 is as good */
    return 0;
}

static int played_bind(int fd, const struct sockaddr *a, socklen_t n) {
    return fails("bind %d to %s", fd, name_of(a, n)) ? -1 : 0;
}

static int played_listen(int fd, int n) {
    return fails("listen %d, %d", fd, n) ? -1 : 0;
}

static int played_accept(int fd, struct sockaddr *a, socklen_t *n, int flags) {
    assert_true(!a && !n);
    if (fails("accept of %d, %d", fd, flags) || net.callers == 0)
        return -1;
    net.callers--;
    int caller = played_open_from(draw(2));
    assert_true(caller < FDS);
    net.told[caller] = 0;
    net.stranger[caller] = draw(6) == 0;
    note("  %d, a stranger: %d", caller, net.stranger[caller]);
    return caller;
}

/* Of a hello, or of whatever else is awaited. */
static ssize_t played_receive(int fd, void *p, size_t n, int flags) {
    static const int codes[] = {EAGAIN, EINTR, ECONNREFUSED, EPIPE, EAGAIN, EAGAIN};
    if (fails("receive %zu from %d, %d", n, fd, flags))
        return -1;
    int luck = draw(20);
    errno = codes[luck % 6];
    if (luck < 7)
        return luck == 6 ? 0 : -1;
    size_t got = draw(3) ? n : 1 + (size_t)draw((int)n);
    struct door_hello h = {.magic = DOOR_MAGIC + net.stranger[fd], .rank = fd, .world = 3};
    size_t at = net.told[fd] % sizeof(h);
    for (size_t i = 0; i < got; i++)
        ((char *)p)[i] = ((const char *)&h)[(at + i) % sizeof(h)];
    net.told[fd] += got;
    note("  %zu", got);
    return (ssize_t)got;
}

static ssize_t played_send(int fd, const void *p, size_t n, int flags) {
    static const int codes[] = {EAGAIN, EINTR, ECONNREFUSED, EPIPE, EAGAIN};
    if (fails("send %.*s to %d, %d", (int)n, (const char *)p, fd, flags))
        return -1;
    int luck = draw(12);
    errno = codes[luck % 5];
    if (luck < 5)
        return -1;
    return draw(9) == 0 ? 0 : draw(2) ? (ssize_t)n : 1 + draw((int)n);
}

static int played_poll(struct pollfd *p, nfds_t n, int ms) {
    int happened = 0;
    for (nfds_t i = 0; i < n; i++)
        note("  %d for %d", p[i].fd, p[i].events);
    if (fails("poll %d for %d ms", (int)n, ms))
        return -1;
    for (nfds_t i = 0; i < n; i++) {
        int one_in = p[i].fd == WAKE_FD || p[i].fd >= WATCHED ? 60 : 2;
        p[i].revents = p[i].fd >= 0 && draw(one_in) == 0 ? p[i].events : 0;
        happened += p[i].revents != 0;
    }
    net.callers += draw(2) ? draw(3) : 0;
    net.now_ns += happened ? 100000 : (int64_t)(ms / (1 + draw(2))) * 1000000;
    note("  %d", happened);
    return happened;
}

static int played_connect(int fd, const struct sockaddr *a, socklen_t n) {
    static const int codes[] = {EINPROGRESS, EINPROGRESS, EINTR, ECONNREFUSED, 0};
    if (fails("connect %d to %s", fd, name_of(a, n)))
        return -1;
    errno = codes[draw(5)];
    return errno ? -1 : 0;
}

static int played_get(int fd, int level, int option, void *ret, socklen_t *n) {
    static const int codes[] = {0, 0, ECONNREFUSED, EHOSTUNREACH};
    assert_int_equal(*n, sizeof(int));
    if (fails("get %d: %d, %d", fd, level, option))
        return -1;
    memcpy(ret, &codes[draw(4)], sizeof(int));
    return 0;
}

static struct sockaddr_storage address_draw(socklen_t *ret_n) {
    static const char *const hosts[] = {
        "10.0.0.7", "127.0.0.1", "127.8.8.8",       "128.0.0.1",
        "::1",      "fd00::7",   "::ffff:10.0.0.9", "::ffff:127.0.0.1"};
    const char *host = hosts[draw(8)];
    struct sockaddr_storage a = {.ss_family = strchr(host, ':') ? AF_INET6 : AF_INET};
    struct sockaddr_in *v4 = (void *)&a;
    struct sockaddr_in6 *v6 = (void *)&a;
    v4->sin_port = htons((uint16_t)(1 + draw(65535)));
    inet_pton(a.ss_family, host,
              a.ss_family == AF_INET ? (void *)&v4->sin_addr : (void *)&v6->sin6_addr);
    *ret_n = a.ss_family == AF_INET ? sizeof(*v4) : sizeof(*v6);
    return a;
}

static int name_end(const char *what, int fd, struct sockaddr *ret, socklen_t *n) {
    socklen_t length;
    struct sockaddr_storage a = address_draw(&length);
    assert_true(*n == sizeof(a));
    if (fails("%s of %d", what, fd))
        return -1;
    memcpy(ret, &a, length);
    *n = length;
    return 0;
}

static int played_peer(int fd, struct sockaddr *ret, socklen_t *n) {
    return name_end("peer", fd, ret, n);
}

static int played_own(int fd, struct sockaddr *ret, socklen_t *n) {
    return name_end("own end", fd, ret, n);
}

static int played_resolve(const char *host, const char *service, const struct addrinfo *hints,
                          struct addrinfo **ret) {
    if (fails("resolve %s, %s, %d, %d", host, service, hints->ai_family, hints->ai_socktype))
        return EAI_NONAME;
    socklen_t n;
    net.address = address_draw(&n);
    net.info = (struct addrinfo){.ai_addr = (void *)&net.address, .ai_addrlen = n};
    *ret = &net.info;
    return 0;
}

static void played_resolved(struct addrinfo *list) {
    assert_ptr_equal(list, &net.info);
    note("list no more");
}

#define clock_gettime  played_clock
#define socket         played_socket
#define setsockopt     played_set
#define bind           played_bind
#define listen         played_listen
#define accept4        played_accept
#define recv           played_receive
#define send           played_send
#define connect        played_connect
#define getsockopt     played_get
#define getpeername    played_peer
#define getsockname    played_own
#define getaddrinfo    played_resolve
#define freeaddrinfo   played_resolved
#define close(fd)      played_close(fd)
#define poll(p, n, ms) played_poll(p, n, ms)
#define gone           link_gone
#include "scenarios/jobs/ranktrain/net/link.c"
#undef gone
#include "scenarios/jobs/ranktrain/net/door.c"
#undef close
#undef poll

static void say_address(const char *what, int r, const struct link_address *a) {
    char name[LINK_NAME];
    for (size_t i = a->length; i < sizeof(a->addr); i++) /* it goes to others as a whole */
        assert_int_equal(((const char *)&a->addr)[i], 0);
    note("> %s %d: %s, %u bytes, of family %d, loopback %d", what, r, link_name(a, name), a->length,
         a->addr.ss_family, link_is_loopback(a));
}

static struct link_wait wait_draw(void) {
    return (struct link_wait){net.now_ns + (draw(4) ? 5000000000 : draw(2) * 20000000), WAKE_FD};
}

static void links_all(uint64_t seed) {
    struct link_address a = {.length = 0}, peer = {.length = 0};
    struct err err = {0};
    char text[] = "what is sent", got[20] = "";
    memset(&net, 0, sizeof(net));
    net.now_ns = INT64_C(3000000000);
    int r = link_resolve("name", 1 + draw(65535), &a, &err);
    note("> resolved %d, %d %s", r, err.code, err.msg);
    if (r < 0)
        return;
    say_address("resolved", r, &a);
    link_set_port(&a, 777);
    say_address("set", r, &a);
    struct link_wait w = wait_draw();
    int fd = link_connect(&a, &w);
    note("> connected %d", fd);
    if (fd < 0)
        return;
    w = wait_draw();
    note("> sent %d", link_send(fd, text, sizeof(text) - 1, &w));
    w = wait_draw();
    r = link_receive(fd, got, sizeof(got) - 1, &w);
    note("> received %d", r);
    for (size_t i = 0; i < sizeof(got); i++)
        note("> %02x", (unsigned char)got[i]);
    r = link_peer(fd, &peer);
    if (r == 0)
        say_address("peer", r, &peer);
    note("> port %d", link_port(fd));
    link_close(&fd);
    link_close(&fd);
    note("> %d", fd);
}

static void doors_all(uint64_t seed) {
    struct door d;
    struct err err = {0};
    const int watched[] = {WATCHED, -1, WATCHED + 1};
    memset(&net, 0, sizeof(net));
    net.now_ns = INT64_C(3000000000);
    int port = draw(2) ? 29500 : 0, r = door_open(&d, port, &err);
    note("> opened %d, %d %s: %d, %d", r, err.code, err.msg, d.listener, d.n);
    net.callers = draw(8) ? draw(4) : DOOR_CALLERS + 2;
    for (int i = 0; i < 4 && r >= 0; i++) {
        struct door_hello h = {.rank = -7};
        struct link_wait w = wait_draw();
        int gone = -7;
        r = door_wait(&d, &w, watched, draw(4), &h, &gone);
        note("> %d: rank %d of %d, gone %d; %d wait", r, r < 0 ? -7 : h.rank, r < 0 ? 0 : h.world,
             gone, d.n);
        if (r >= 0)
            played_close(r);
    }
    door_close(&d);
    note("> %d, %d", d.listener, d.n);
}

#define RECORD(name) "tests/scenarios/jobs/ranktrain/net/record/" name ".txt"

static const struct play plays[] = {{RECORD("links"), links_all, 150, true, {EINTR, EMFILE}},
                                    {RECORD("doors"), doors_all, 80, true, {EADDRINUSE, EINTR}}};

static void test_what_links_do_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

static void test_who_is_let_in_is_on_record(void **state) {
    (void)state;
    played_check(&plays[1]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_links_do_is_on_record),
        cmocka_unit_test(test_who_is_let_in_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
