/* Collectives over TCP: each rank sends to the next of a ring and hears from the one before, as
 * ring_plan.h says; with contiguous ranks one edge of the ring leaves a node. What one rank sends
 * to another goes over a connection of the two. */
#include "scenarios/jobs/ranktrain/net/collective.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"
#include "scenarios/jobs/ranktrain/net/ring_plan.h"
#include "scenarios/jobs/ranktrain/net/tcp_links.h"
#include "scenarios/jobs/ranktrain/net/tcp_message.h"
#include "scenarios/jobs/ranktrain/net/tcp_pairs.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>

enum { PHASE_BITS = 24 }; /* of a message's number; above them that of the collective */

struct ring {
    struct tcp_links links;
    struct tcp_pairs pairs;

    struct collective_call *call; /* NULL: none is under way round the ring */
    struct ring_plan plan;
    struct ring_move move;
    int64_t started_ns, deadline_ns;
    uint64_t calls;
    int phase, phases, last_sent;
    struct tcp_message out, in;
    char *staging; /* what comes to be added */
    size_t staging_n;
};

static uint64_t number_of(const struct ring *r) {
    return r->calls << PHASE_BITS | (uint64_t)r->phase;
}

static bool gone_out(const struct ring *r) {
    return !r->move.sends || tcp_message_is_whole(&r->out);
}

static bool come_in(const struct ring *r) {
    return !r->move.gets || tcp_message_is_whole(&r->in);
}

static void phase_begin(struct ring *r) {
    char *data = r->call->data;
    r->move = ring_plan_move(&r->plan, r->phase);
    if (r->move.sends)
        tcp_message_out(&r->out, number_of(r), data + r->move.out, r->move.out_bytes);
    if (r->move.gets)
        tcp_message_in(&r->in, r->move.adds ? r->staging : data + r->move.in, r->move.in_bytes);
}

/* Sends and receives what goes without waiting. Returns 0 or an error. */
static int exchange(struct ring *r, struct err *err) {
    for (int more = 1; more;) {
        more = 0;
        if (!gone_out(r)) {
            int n = tcp_message_send(&r->out, r->links.next_fd);
            if (n < 0)
                return tcp_links_lost(&r->links, r->links.next, n, err);
            more |= n;
        }
        if (!come_in(r)) {
            int n = tcp_message_receive(&r->in, r->links.prev_fd);
            if (n < 0)
                return tcp_links_lost(&r->links, r->links.prev, n, err);
            more |= n;
        }
    }
    return 0;
}

static uint64_t phase_of(uint64_t number) {
    return number & ((UINT64_C(1) << PHASE_BITS) - 1);
}

static int check(const struct ring *r, struct err *err) {
    const char *name = r->links.names[r->links.prev];
    uint64_t number = number_of(r), theirs = r->in.head.number;
    if (!tcp_message_is_right(&r->in))
        return err_say(err, -EBADMSG,
                       "what came from rank %d at %s is not what it has sent: its checksum in "
                       "collective %" PRIu64 ", phase %d, is another; the network changes bytes",
                       r->links.prev, name, r->calls, r->phase);
    if (theirs != number)
        return err_say(err, -EPROTO,
                       "rank %d at %s is in collective %" PRIu64 ", phase %" PRIu64
                       ", this rank in %" PRIu64 ", %d",
                       r->links.prev, name, theirs >> PHASE_BITS, phase_of(theirs), r->calls,
                       r->phase);
    return 0;
}

static int phase_end(struct ring *r, struct err *err) {
    int e = r->move.gets ? check(r, err) : 0;
    if (e < 0)
        return e;
    if (r->move.adds) {
        int64_t *sum = (int64_t *)(void *)((char *)r->call->data + r->move.in);
        const int64_t *staging = (const void *)r->staging;
        for (size_t i = 0; i < r->move.in_bytes / sizeof(*sum); i++)
            sum[i] += staging[i];
    }
    if (++r->phase < r->phases)
        phase_begin(r);
    return 0;
}

static int late(const struct ring *r, struct err *err) {
    double s = (double)(r->deadline_ns - r->started_ns) / 1e9;
    const struct tcp_links *l = &r->links;
    if (!come_in(r))
        return err_say(err, -ETIMEDOUT,
                       "rank %d at %s sent nothing more for a collective within %.3g s", l->prev,
                       l->names[l->prev], s);
    return err_say(err, -ETIMEDOUT, "rank %d at %s took nothing more of a collective within %.3g s",
                   l->next, l->names[l->next], s);
}

/* Until something can move, or the time is up. A successor never speaks on its connection: if that
 * becomes readable it has gone. It may, when it has all that it needs. */
static int wait_for_peers(struct ring *r, int64_t until_ns, struct err *err) {
    bool watch = r->phase < r->last_sent || !gone_out(r);
    struct pollfd p[3] = {
        {.fd = watch ? r->links.next_fd : -1,
         .events = (short)(gone_out(r) ? POLLIN : POLLIN | POLLOUT)},
        {.fd = come_in(r) ? -1 : r->links.prev_fd, .events = POLLIN},
        {.fd = r->links.wake_fd, .events = POLLIN},
    };
    int64_t until = until_ns < r->deadline_ns ? until_ns : r->deadline_ns;
    int n = poll(p, 3, deadline_left_ms(until));
    if (n < 0 && errno != EINTR)
        return err_set(err, -errno, "poll");
    if (n > 0 && p[2].revents)
        return -ECANCELED;
    if (n > 0 && (p[0].revents & (POLLIN | POLLERR | POLLHUP)))
        return tcp_links_lost(&r->links, r->links.next, -ECONNRESET, err);
    return n > 0;
}

static int ring_poll(void *c, int timeout_ms, struct err *err) {
    struct ring *r = c;
    int64_t until = timeout_ms < 0 ? INT64_MAX : deadline_in_ns((int64_t)timeout_ms * 1000000);
    if (r->pairs.call)
        return tcp_pairs_poll(&r->pairs, timeout_ms, err);
    while (r->phase < r->phases) {
        int e = exchange(r, err);
        if (e == 0 && gone_out(r) && come_in(r)) {
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

static void reserve(struct ring *r) {
    size_t n = ring_plan_staging(&r->plan);
    if (r->staging_n >= n)
        return;
    free(r->staging);
    r->staging = mem_alloc(n, 1);
    r->staging_n = n;
}

static int ring_start(void *c, struct collective_call *call, struct err *err) {
    struct ring *r = c;
    if (r->links.shut)
        return err_say(err, -EPIPE, "the collective was aborted");
    assert(r->phase == r->phases && !r->pairs.call);
    if (call->op == COLLECTIVE_SEND || call->op == COLLECTIVE_RECEIVE)
        return tcp_pairs_start(&r->pairs, call, err);
    r->call = call;
    r->plan = (struct ring_plan){.rank = r->links.rank, .world = r->links.world, .call = call};
    r->calls++;
    r->started_ns = deadline_now_ns();
    r->deadline_ns = call->deadline_ns;
    r->phases = ring_plan_phases(&r->plan);
    r->last_sent = ring_plan_last_sent(&r->plan);
    r->phase = 0;
    reserve(r);
    if (r->phases)
        phase_begin(r);
    return 0;
}

static void ring_forget(void *c, int rank) {
    struct ring *r = c;
    r->pairs.call = NULL;
    link_close(&r->links.pairs[rank]);
}

static void ring_abort(void *c) {
    struct ring *r = c;
    tcp_links_shut(&r->links);
}

static int ring_close(void *c, struct err *err) {
    struct ring *r = c;
    if (!r)
        return 0;
    tcp_links_close(&r->links);
    free(r->staging);
    free(r);
    return 0;
}

static int ring_open(void **ret, struct peer_group *g, const struct link_wait *w, struct err *err) {
    struct ring *r = mem_new(struct ring);
    r->pairs.links = &r->links;
    int e = tcp_links_open(&r->links, g, w, err);
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
    .forget = ring_forget,
    .abort = ring_abort,
    .close = ring_close,
};
