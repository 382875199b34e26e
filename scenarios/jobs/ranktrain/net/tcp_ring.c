/* A ring all-reduce over TCP. Each rank sends to the next and hears from the one before.
 *
 * The data is cut into as many chunks as there are ranks. In the first world - 1 phases a rank
 * sends the chunk it has just added to and adds the one that comes; then each chunk is complete on
 * one rank, and in another world - 1 phases the complete ones go round. Every rank sends
 * 2 (world - 1) / world of the data, which is the least that is possible, and with contiguous ranks
 * one edge of the ring leaves a node. A message is 16 bytes, its number and a checksum, and one chunk.
 * TCP's own checksum is 16 bits, and right for what a card has spoilt before it was made. */
#include "scenarios/jobs/ranktrain/net/collective.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* A message on its way out or in; done counts its bytes, header included. */
struct tcp_ring_message {
    struct {
        uint64_t number, checksum;
    } head;
    char *body;
    size_t bytes, done;
};

struct ring {
    int rank, world, wake_fd;
    int next, prev; /* descriptors; -1 when aborted */
    int next_rank, prev_rank;
    char next_name[LINK_NAME], prev_name[LINK_NAME];

    int64_t *data;
    size_t n;
    int64_t started_ns, deadline_ns;
    uint64_t calls;
    int phase; /* 2 (world - 1): done */
    struct tcp_ring_message out, in;
    int64_t *staging; /* one chunk */
    size_t staging_n;
};

static int phases(const struct ring *r) {
    return 2 * (r->world - 1);
}

static size_t chunk_begin(const struct ring *r, int chunk) {
    return r->n * (size_t)chunk / (size_t)r->world;
}

static size_t chunk_length(const struct ring *r, int chunk) {
    return chunk_begin(r, chunk + 1) - chunk_begin(r, chunk);
}

/* The chunk that goes out in a phase; the one that comes in is what the rank before sends. */
static int chunk_sent(const struct ring *r, int rank, int phase) {
    int chunk = phase < r->world - 1 ? rank - phase : rank + 1 - (phase - (r->world - 1));
    return (chunk + 2 * r->world) % r->world;
}

static bool adding(const struct ring *r) {
    return r->phase < r->world - 1;
}

/* Of the number and the chunk. Four lanes, for one would wait for its multiplications; each step is
 * reversible, so that whatever one lane differs in stays different. It is no secret. */
static uint64_t checksum(uint64_t number, const void *body, size_t bytes) {
    enum { LANES = 4 };
    static const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    const int64_t *v = body;
    size_t n = bytes / sizeof(*v);
    uint64_t h[LANES] = {number, 1, 2, 3}, sum = n;
    for (size_t i = 0; i < n; i++) {
        uint64_t *lane = &h[i % LANES], mixed = (*lane ^ (uint64_t)v[i]) * odd;
        *lane = mixed << 29 | mixed >> 35;
    }
    for (int i = 0; i < LANES; i++) {
        sum = (sum ^ h[i]) * odd;
        sum ^= sum >> 32;
    }
    return sum;
}

static void phase_begin(struct ring *r) {
    int out = chunk_sent(r, r->rank, r->phase), in = chunk_sent(r, r->prev_rank, r->phase);
    uint64_t number = r->calls << 8 | (uint64_t)r->phase;
    r->out = (struct tcp_ring_message){.head.number = number,
                                       .body = (char *)(r->data + chunk_begin(r, out)),
                                       .bytes = chunk_length(r, out) * sizeof(*r->data)};
    r->out.head.checksum = checksum(number, r->out.body, r->out.bytes);
    r->in = (struct tcp_ring_message){
        .body = (char *)(adding(r) ? r->staging : r->data + chunk_begin(r, in)),
        .bytes = chunk_length(r, in) * sizeof(*r->data)};
}

static bool whole(const struct tcp_ring_message *m) {
    return m->done == sizeof(m->head) + m->bytes;
}

static int message_parts(struct tcp_ring_message *m, struct iovec iov[2]) {
    int n = 0;
    size_t head = sizeof(m->head);
    if (m->done < head)
        iov[n++] = (struct iovec){(char *)&m->head + m->done, head - m->done};
    size_t begun = m->done > head ? m->done - head : 0;
    if (begun < m->bytes)
        iov[n++] = (struct iovec){m->body + begun, m->bytes - begun};
    return n;
}

static int moved(struct tcp_ring_message *m, ssize_t n) {
    if (n > 0) {
        m->done += (size_t)n;
        return 1;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return n == 0 || errno == EPIPE ? -ECONNRESET : -errno;
}

static int lost_peer(const struct ring *r, bool next, int code, struct err *err) {
    int rank = next ? r->next_rank : r->prev_rank;
    const char *name = next ? r->next_name : r->prev_name;
    if (code == -ECONNRESET)
        return err_say(err, code, "rank %d at %s is gone: it closed its connection", rank, name);
    return err_set(err, code, "connection with rank %d at %s", rank, name);
}

/* Sends and receives what goes without waiting. Returns 0 or an error. */
static int exchange(struct ring *r, struct err *err) {
    for (int more = 1; more;) {
        struct iovec iov[2];
        struct msghdr msg = {.msg_iov = iov};
        more = 0;
        if (!whole(&r->out)) {
            msg.msg_iovlen = (size_t)message_parts(&r->out, iov);
            int n = moved(&r->out, sendmsg(r->next, &msg, MSG_NOSIGNAL));
            if (n < 0)
                return lost_peer(r, true, n, err);
            more |= n;
        }
        if (!whole(&r->in)) {
            msg.msg_iovlen = (size_t)message_parts(&r->in, iov);
            int n = moved(&r->in, recvmsg(r->prev, &msg, 0));
            if (n < 0)
                return lost_peer(r, false, n, err);
            more |= n;
        }
    }
    return 0;
}

static int phase_end(struct ring *r, struct err *err) {
    if (r->in.head.checksum != checksum(r->in.head.number, r->in.body, r->in.bytes))
        return err_say(err, -EBADMSG,
                       "what came from rank %d at %s is not what it has sent: its checksum in "
                       "collective %llu, phase %llu, is another; the network changes bytes",
                       r->prev_rank, r->prev_name, (unsigned long long)(r->out.head.number >> 8),
                       (unsigned long long)(r->out.head.number & 0xff));
    if (r->in.head.number != r->out.head.number)
        return err_say(err, -EPROTO,
                       "rank %d at %s is in collective %llu, phase %llu, this rank in %llu, %llu",
                       r->prev_rank, r->prev_name, (unsigned long long)(r->in.head.number >> 8),
                       (unsigned long long)(r->in.head.number & 0xff),
                       (unsigned long long)(r->out.head.number >> 8),
                       (unsigned long long)(r->out.head.number & 0xff));
    if (adding(r)) {
        int chunk = chunk_sent(r, r->prev_rank, r->phase);
        int64_t *sum = r->data + chunk_begin(r, chunk);
        for (size_t i = 0; i < chunk_length(r, chunk); i++)
            sum[i] += r->staging[i];
    }
    if (++r->phase < phases(r))
        phase_begin(r);
    return 0;
}

static int late(const struct ring *r, struct err *err) {
    double s = (double)(r->deadline_ns - r->started_ns) / 1e9;
    if (!whole(&r->in))
        return err_say(err, -ETIMEDOUT,
                       "rank %d at %s sent nothing more for a collective within %.3g s",
                       r->prev_rank, r->prev_name, s);
    return err_say(err, -ETIMEDOUT, "rank %d at %s took nothing more of a collective within %.3g s",
                   r->next_rank, r->next_name, s);
}

/* Until something can move, or the time is up. A successor never speaks on its connection: if that
 * becomes readable it has gone. In the last phase it may, when it has all it needs. */
static int wait_for_peers(struct ring *r, int64_t until_ns, struct err *err) {
    bool watch = r->phase < phases(r) - 1 || !whole(&r->out);
    struct pollfd p[3] = {
        {.fd = watch ? r->next : -1, .events = (short)(whole(&r->out) ? POLLIN : POLLIN | POLLOUT)},
        {.fd = whole(&r->in) ? -1 : r->prev, .events = POLLIN},
        {.fd = r->wake_fd, .events = POLLIN},
    };
    int64_t until = until_ns < r->deadline_ns ? until_ns : r->deadline_ns;
    int n = poll(p, 3, deadline_left_ms(until));
    if (n < 0 && errno != EINTR)
        return err_set(err, -errno, "poll");
    if (n > 0 && p[2].revents)
        return -ECANCELED;
    if (n > 0 && (p[0].revents & (POLLIN | POLLERR | POLLHUP)))
        return lost_peer(r, true, -ECONNRESET, err);
    return n;
}

static int ring_poll(void *c, int timeout_ms, struct err *err) {
    struct ring *r = c;
    int64_t until = timeout_ms < 0 ? INT64_MAX : deadline_in_ns((int64_t)timeout_ms * 1000000);
    while (r->phase < phases(r)) {
        int e = exchange(r, err);
        if (e == 0 && whole(&r->out) && whole(&r->in)) {
            e = phase_end(r, err);
            if (e == 0)
                continue;
        }
        if (e == 0)
            e = wait_for_peers(r, until, err);
        if (e < 0)
            return e;
        int64_t now = deadline_now_ns();
        if (e == 0 && now >= r->deadline_ns)
            return late(r, err);
        if (e == 0 && now >= until)
            return 0;
    }
    return 1;
}

static int ring_start(void *c, int64_t *data, size_t n, int64_t deadline_ns, struct err *err) {
    struct ring *r = c;
    if (r->world > 1 && r->next < 0)
        return err_say(err, -EPIPE, "the collective was aborted");
    assert(r->phase == phases(r));
    r->data = data;
    r->n = n;
    r->calls++;
    r->started_ns = deadline_now_ns();
    r->deadline_ns = deadline_ns;
    if (r->world == 1)
        return 0;
    if (r->staging_n < n / (size_t)r->world + 1) {
        r->staging_n = n / (size_t)r->world + 1;
        free(r->staging);
        r->staging = mem_array(int64_t, r->staging_n);
    }
    r->phase = 0;
    phase_begin(r);
    return 0;
}

static void ring_abort(void *c) {
    struct ring *r = c;
    link_close(&r->next);
    link_close(&r->prev);
}

static int ring_close(void *c, struct err *err) {
    struct ring *r = c;
    if (!r)
        return 0;
    ring_abort(r);
    free(r->staging);
    free(r);
    return 0;
}

/* Waits for the rank before; whoever else calls is sent away. */
static int admit(struct ring *r, struct peer_group *g, const struct link_wait *w, struct err *err) {
    struct door_hello h;
    int gone;
    for (;;) {
        int fd = door_wait(&g->door, w, &r->next, 1, &h, &gone);
        if (fd == -ECANCELED)
            return fd;
        if (fd == -EPIPE)
            return lost_peer(r, true, -ECONNRESET, err);
        if (fd < 0)
            return err_set(err, fd, "waiting for the connection of rank %d at %s", r->prev_rank,
                           r->prev_name);
        if (h.purpose == DOOR_RING && h.rank == r->prev_rank && h.world == r->world &&
            memcmp(h.session, g->session, sizeof(h.session)) == 0) {
            r->prev = fd;
            return 0;
        }
        close(fd);
    }
}

static int ring_connect(struct ring *r, struct peer_group *g, const struct link_wait *w,
                        struct err *err) {
    struct door_hello h = {
        .magic = DOOR_MAGIC, .purpose = DOOR_RING, .rank = g->rank, .world = g->world};
    memcpy(h.session, g->session, sizeof(h.session));
    link_name(&g->peers[r->next_rank], r->next_name);
    link_name(&g->peers[r->prev_rank], r->prev_name);
    int e = r->next = link_connect(&g->peers[r->next_rank], w);
    if (e >= 0)
        e = link_send(r->next, &h, sizeof(h), w);
    if (e < 0)
        return e == -ECANCELED
                   ? e
                   : err_set(err, e, "connect to rank %d at %s", r->next_rank, r->next_name);
    return admit(r, g, w, err);
}

static int ring_open(void **ret, struct peer_group *g, const struct link_wait *w, struct err *err) {
    struct ring *r = mem_new(struct ring);
    r->rank = g->rank;
    r->world = g->world;
    r->wake_fd = w->wake_fd;
    r->next = r->prev = -1;
    r->next_rank = (g->rank + 1) % g->world;
    r->prev_rank = (g->rank + g->world - 1) % g->world;
    r->phase = phases(r);
    int e = g->world == 1 ? 0 : ring_connect(r, g, w, err);
    if (e < 0) {
        ring_close(r, NULL);
        return e;
    }
    *ret = r;
    return 0;
}

const struct collective collective_tcp_ring = {
    .name = "tcp",
    .summary = "a ring over TCP",
    .open = ring_open,
    .start = ring_start,
    .poll = ring_poll,
    .abort = ring_abort,
    .close = ring_close,
};
