/* The collective over TCP in a network that is played: whom it connects with and lets in, each piece that it sends and
 * takes, for what it waits, what comes of each call that fails, and what is said then. */
#include "tests/played.h"

#include "scenarios/jobs/ranktrain/net/bootstrap.h"
#include "scenarios/jobs/ranktrain/net/collective.h"
#include "scenarios/jobs/ranktrain/net/tcp_links.h"
#include "scenarios/jobs/ranktrain/net/tcp_message.h"
#include "scenarios/jobs/ranktrain/net/tcp_pairs.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { WAKE_FD = 900, NUMBERS_MAX = 60, HEAD = 16, POLLS_MAX = 60, CALLS = 14, FDS = 128 };

static struct {
    int64_t now_ns;
    struct peer_group group;
    /* What is on its way over a connection. */
    struct stream {
        char bytes[HEAD + 8 * NUMBERS_MAX];
        size_t n, at;
    } streams[FDS];
} net;

static int64_t from_now(int64_t ns) {
    return ns == INT64_MAX ? -1 : ns - net.now_ns;
}

static int played_clock(clockid_t id, struct timespec *ret) {
    assert_int_equal(id, CLOCK_MONOTONIC);
    net.now_ns += 1000 + draw(1000);
    *ret = (struct timespec){net.now_ns / 1000000000, net.now_ns % 1000000000};
    return 0;
}

/* ---- connections ---- */

static int played_connect(const struct link_address *to, const struct link_wait *w) {
    char name[LINK_NAME];
    if (fails("connect to %s, within %lld, woken by %d", link_name(to, name),
              (long long)from_now(w->deadline_ns), w->wake_fd))
        return -errno;
    int luck = draw(120);
    return luck > 1 ? played_open_from(draw(2)) : luck ? -ECONNREFUSED : -ECANCELED;
}

static int played_say_hello(int fd, const void *p, size_t n, const struct link_wait *w) {
    struct door_hello h;
    assert_int_equal(n, sizeof(h));
    memcpy(&h, p, n);
    if (fails("hello to %d, within %lld: %llx, as %u, rank %d of %d, %016llx", fd,
              (long long)from_now(w->deadline_ns), (unsigned long long)h.magic, h.purpose, h.rank,
              h.world, (unsigned long long)on_record_sum(0, &h, n)))
        return -errno;
    return 0;
}

/* Who comes is awaited, or is so but for one thing. */
static struct door_hello who_comes(void) {
    const struct peer_group *g = &net.group;
    struct door_hello h = {.magic = DOOR_MAGIC, .world = g->world};
    int n = g->world;
    memcpy(h.session, g->session, sizeof(h.session));
    h.purpose = draw(2) ? DOOR_RING : DOOR_PAIR;
    h.rank = h.purpose == DOOR_RING ? (g->rank + n - 1) % n : g->rank + 1 + draw(n - g->rank);
    switch (draw(12)) {
    case 0:
        h.purpose = DOOR_JOIN;
        break;
    case 1:
        h.rank = draw(n + 1) - 1;
        break;
    case 2:
        h.world += draw(2) ? 1 : -1;
        break;
    case 3:
        h.session[draw(DOOR_SESSION)] ^= 1;
        break;
    case 4:
        h.purpose = DOOR_RING + DOOR_PAIR - h.purpose;
        break;
    }
    return h;
}

static int played_door_wait(struct door *d, const struct link_wait *w, const int *watched, int n,
                            struct door_hello *ret, int *ret_gone) {
    assert_int_equal(n, 1);
    assert_ptr_equal(d, &net.group.door);
    if (fails("wait at the door, watching %d, within %lld", *watched,
              (long long)from_now(w->deadline_ns)))
        return -errno;
    int luck = draw(150);
    *ret_gone = 0;
    if (luck < 3)
        return luck == 0 ? -EPIPE : luck == 1 ? -ECANCELED : -ETIMEDOUT;
    *ret = who_comes();
    int fd = played_open();
    note("  rank %d of %d comes, for %u, as %d", ret->rank, ret->world, ret->purpose, fd);
    return fd;
}

static int played_shutdown(int fd, int how) {
    note("shut %d, %d", fd, how);
    return 0;
}

/* ---- what goes and comes ---- */

static uint64_t number_awaited(int fd);

static size_t length_of(const struct msghdr *m) {
    size_t n = 0;
    for (size_t i = 0; i < m->msg_iovlen; i++)
        n += m->msg_iov[i].iov_len;
    return n;
}

/* The next message, of which one thing may be wrong. */
static void fill(struct stream *s, int fd, size_t n) {
    uint64_t number = number_awaited(fd) + (draw(150) ? 0 : (uint64_t)draw(3));
    struct tcp_message m;
    n = n > HEAD ? n - HEAD : 0;
    assert_true(n <= sizeof(s->bytes) - HEAD);
    for (size_t i = 0; i < n; i++)
        s->bytes[HEAD + i] = (char)draw(256);
    tcp_message_out(&m, number, s->bytes + HEAD, n);
    memcpy(s->bytes, &m.head, HEAD);
    if (draw(150) == 0)
        s->bytes[draw((int)(HEAD + n))] ^= 4;
    s->n = HEAD + n;
    s->at = 0;
}

static ssize_t played_receive(int fd, struct msghdr *m, int flags) {
    size_t n = length_of(m), moved = 0;
    if (fails("receive from %d, %zu bytes in %zu, %d", fd, n, (size_t)m->msg_iovlen, flags))
        return -1;
    int luck = draw(120);
    errno = luck == 1 ? ECONNREFUSED : EAGAIN;
    if (luck < 30)
        return luck == 0 ? 0 : -1;
    struct stream *s = &net.streams[fd];
    if (s->at == s->n)
        fill(s, fd, n);
    size_t left = s->n - s->at < n ? s->n - s->at : n;
    left = draw(3) ? left : 1 + (size_t)draw((int)left);
    for (size_t i = 0; i < m->msg_iovlen && moved < left; i++) {
        size_t k = m->msg_iov[i].iov_len;
        k = k < left - moved ? k : left - moved;
        memcpy(m->msg_iov[i].iov_base, s->bytes + s->at + moved, k);
        moved += k;
    }
    s->at += moved;
    note("  %zu", moved);
    return (ssize_t)moved;
}

static ssize_t played_send(int fd, const struct msghdr *m, int flags) {
    uint64_t sum = 0;
    for (size_t i = 0; i < m->msg_iovlen; i++)
        sum = sum * 31 + on_record_sum(0, m->msg_iov[i].iov_base, m->msg_iov[i].iov_len);
    int n = (int)length_of(m);
    if (fails("send to %d, %d bytes in %zu, %d: %016llx", fd, n, (size_t)m->msg_iovlen, flags,
              (unsigned long long)sum))
        return -1;
    int luck = draw(120);
    errno = luck == 0 ? EPIPE : luck == 1 ? ECONNREFUSED : EAGAIN;
    if (luck < 30)
        return -1;
    return draw(3) ? n : 1 + draw(n);
}

/* Nothing happens, or something that was asked for, or an end. */
static short what_happens(short events) {
    static const short ends[] = {POLLHUP, POLLERR, POLLRDHUP, POLLIN | POLLHUP};
    if (events & POLLRDHUP && draw(12) == 0)
        return POLLRDHUP;
    if (draw(120) == 0)
        return ends[draw(4)] & (short)(events | POLLHUP | POLLERR);
    return draw(2) ? events & (draw(2) ? POLLIN | POLLOUT : draw(2) ? POLLIN : POLLOUT) : 0;
}

static int played_poll(struct pollfd *p, nfds_t n, int ms) {
    int happened = 0;
    for (nfds_t i = 0; i < n; i++)
        note("  %d for %d", p[i].fd, p[i].events);
    if (fails("poll %d for %d ms", (int)n, ms))
        return -1;
    bool nothing = draw(6) == 0;
    for (nfds_t i = 0; i < n; i++) {
        p[i].revents = nothing || p[i].fd < 0 ? 0 : what_happens(p[i].events);
        if (p[i].fd == WAKE_FD && draw(100))
            p[i].revents = 0;
        happened += p[i].revents != 0;
        if (p[i].revents)
            note("  %d says %d", p[i].fd, p[i].revents);
    }
    net.now_ns += happened ? 1000 : (int64_t)ms * 1000000;
    return happened;
}

#define clock_gettime  played_clock
#define link_connect   played_connect
#define link_send      played_say_hello
#define link_close     played_file_close
#define door_wait      played_door_wait
#define shutdown       played_shutdown
#define sendmsg        played_send
#define recvmsg        played_receive
#define close(fd)      played_close(fd)
#define poll(p, n, ms) played_poll(p, n, ms)
#include "scenarios/jobs/ranktrain/net/tcp_links.c"
#include "scenarios/jobs/ranktrain/net/tcp_message.c"
#define exchange exchange_pair
#define check    check_pair
#define late     late_pair
#include "scenarios/jobs/ranktrain/net/tcp_pairs.c"
#undef exchange
#undef check
#undef late
#include "scenarios/jobs/ranktrain/net/tcp_ring.c"
#undef close
#undef poll

static struct ring *ring;

static uint64_t number_awaited(int fd) {
    for (int i = 0; i < ring->links.world; i++)
        if (ring->links.pairs[i] == fd)
            return ring->pairs.got[i];
    return ring->calls << 24 | (uint64_t)ring->phase;
}

/* ---- what is asked of it ---- */

static void group_draw(void) {
    struct peer_group *g = &net.group;
    *g = (struct peer_group){.world = 1 + draw(5), .pairs = draw(3)};
    g->rank = draw(g->world);
    if (draw(60) == 0) { /* the last of as many as there may be, who waits for few */
        *g = (struct peer_group){.world = BOOTSTRAP_MEMBERS, .pairs = true};
        g->rank = g->world - 1;
    }
    for (int i = 0; i < DOOR_SESSION; i++)
        g->session[i] = (unsigned char)draw(256);
    for (int i = 0; i < g->world; i++) {
        struct sockaddr_in a = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)(100 + i)),
                                .sin_addr = {htonl(0x0a000000 + (uint32_t)i)}};
        memcpy(&g->peers[i].addr, &a, sizeof(a));
        g->peers[i].length = sizeof(a);
    }
    note("rank %d of %d, %d", g->rank, g->world, g->pairs);
}

static void say_links(const struct tcp_links *l) {
    note("> rank %d of %d, woken by %d; next %d by %d, before %d by %d; shut %d", l->rank, l->world,
         l->wake_fd, l->next, l->next_fd, l->prev, l->prev_fd, l->shut);
    for (int i = 0; i < BOOTSTRAP_MEMBERS; i++)
        if (l->pairs[i] != -1 || *l->names[i])
            note(">   %d is %s, by %d", i, l->names[i], l->pairs[i]);
}

static struct collective_call call_draw(int64_t *data, size_t *bounds) {
    int n = net.group.world, numbers = draw(NUMBERS_MAX + 1), at = 0;
    struct collective_call c = {.op = (enum collective_op)draw(draw(4) ? 4 : 6),
                                .data = data,
                                .bytes = 8 * (size_t)numbers,
                                .bounds = bounds};
    if (net.group.pairs && draw(2))
        c.op = draw(2) ? COLLECTIVE_SEND : COLLECTIVE_RECEIVE;
    for (int i = 0; i <= NUMBERS_MAX; i++)
        data[i] = draw(1 << 20);
    for (int i = 0; i <= n; i++) {
        at = i == n ? numbers : at + draw(numbers - at + 1);
        bounds[i] = i ? 8 * (size_t)at : 0;
    }
    c.peer = c.op == COLLECTIVE_BROADCAST || draw(8) ? draw(n) : draw(n + 2) - 1;
    if (c.op >= COLLECTIVE_SEND && c.peer == net.group.rank && draw(8))
        c.peer = c.op == COLLECTIVE_SEND || draw(2) ? (c.peer + 1) % n : COLLECTIVE_ANY;
    c.deadline_ns = net.now_ns + (draw(9) ? INT64_C(30000000000) : draw(2) * 25000000);
    note("op %d with %d, %zu bytes, within %lld", c.op, c.peer, c.bytes,
         (long long)from_now(c.deadline_ns));
    return c;
}

static int run(void *c, struct collective_call *call) {
    static const int waits[] = {-1, 0, 20, 1000};
    struct err err = {0};
    int r = collective_tcp_ring.start(c, call, &err);
    note("> started: %d, %d %s", r, err.code, err.msg);
    for (int i = 0; r == 0 && i < POLLS_MAX; i++) {
        int ms = waits[draw(4)];
        r = collective_tcp_ring.poll(c, ms, &err);
        note("> polled for %d: %d, %d %s", ms, r, err.code, err.msg);
    }
    return r;
}

static void call_once(void *c) {
    int64_t data[NUMBERS_MAX + 1];
    size_t bounds[BOOTSTRAP_MEMBERS + 1];
    struct collective_call call = call_draw(data, bounds);
    struct err err = {0};
    int r = run(c, &call);
    note("> %d: with %d, %016llx; %d", r, call.peer,
         (unsigned long long)on_record_sum(0, data, sizeof(data)), ring->pairs.call != NULL);
    if (ring->pairs.call && call.peer >= 0)
        collective_tcp_ring.forget(c, call.peer);
    else if (r != 1 && call.op < COLLECTIVE_SEND) {
        collective_tcp_ring.abort(c);
        r = collective_tcp_ring.start(c, &call, &err);
        note("> after an abort: %d, %d %s", r, err.code, err.msg);
    }
    for (int i = 0; i < FDS; i++) /* what was half taken is of no use to anybody */
        if (r != 1)
            net.streams[i] = (struct stream){0};
}

static void exchange_all(uint64_t seed) {
    struct link_wait w = {.deadline_ns = INT64_C(90000000000), .wake_fd = WAKE_FD};
    struct err err = {0};
    void *c = NULL;
    memset(&net, 0, sizeof(net));
    net.now_ns = INT64_C(50000000000);
    group_draw();
    int r = collective_tcp_ring.open(&c, &net.group, &w, &err);
    note("> opened: %d, %d %s, %d", r, err.code, err.msg, c != NULL);
    ring = c;
    if (r < 0)
        return;
    say_links(&ring->links);
    for (int i = 0; i < CALLS && !ring->links.shut && !(ring->pairs.call); i++)
        call_once(c);
    say_links(&ring->links);
    r = collective_tcp_ring.close(c, &err);
    note("> closed: %d, %d", r, collective_tcp_ring.close(NULL, &err));
}

static const struct play plays[] = {{"tests/scenarios/jobs/ranktrain/net/record/tcp.txt",
                                     exchange_all,
                                     200,
                                     true,
                                     {EINTR, ENETDOWN}}};

static void test_what_ranks_exchange_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_ranks_exchange_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
