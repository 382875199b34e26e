#include "scenarios/jobs/ranktrain/net/tcp_pairs.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>

static bool sending(const struct tcp_pairs *p) {
    return p->call->op == COLLECTIVE_SEND;
}

int tcp_pairs_start(struct tcp_pairs *p, struct collective_call *call, struct err *err) {
    int peer = call->peer;
    bool any = peer == COLLECTIVE_ANY && call->op == COLLECTIVE_RECEIVE;
    if (!any && (peer < 0 || peer >= p->links->world || peer == p->links->rank))
        return err_say(err, -EINVAL, "rank %d has no connection with rank %d", p->links->rank,
                       peer);
    if (!any && p->links->pairs[peer] < 0)
        return err_say(err, -ENOTSUP, "rank %d has no connection with rank %d", p->links->rank,
                       peer);
    p->call = call;
    p->started_ns = deadline_now_ns();
    if (sending(p))
        tcp_message_out(&p->message, p->sent[peer]++, call->data, call->bytes);
    else
        tcp_message_in(&p->message, call->data, call->bytes);
    return 0;
}

/* Returns 1 when all has gone or come, 0 when nothing moves now. */
static int exchange(struct tcp_pairs *p, struct err *err) {
    int r = 1, peer = p->call->peer;
    if (peer == COLLECTIVE_ANY)
        return 0;
    while (r > 0 && !tcp_message_is_whole(&p->message))
        r = sending(p) ? tcp_message_send(&p->message, p->links->pairs[peer])
                       : tcp_message_receive(&p->message, p->links->pairs[peer]);
    return r < 0 ? tcp_links_lost(p->links, peer, r, err) : r;
}

static int check(struct tcp_pairs *p, struct err *err) {
    int peer = p->call->peer;
    const char *name = p->links->names[peer];
    if (sending(p))
        return 1;
    if (!tcp_message_is_right(&p->message))
        return err_say(err, -EBADMSG,
                       "what came from rank %d at %s is not what it has sent: its checksum in "
                       "message %" PRIu64 " is another; the network changes bytes",
                       peer, name, p->got[peer]);
    if (p->message.head.number != p->got[peer])
        return err_say(err, -EPROTO, "rank %d at %s has sent message %" PRIu64 " and not %" PRIu64,
                       peer, name, p->message.head.number, p->got[peer]);
    p->got[peer]++;
    return 1;
}

/* Until something can move, or the time is up. Whoever speaks first is the peer of a call that
 * takes anybody. Who has closed his side takes nothing more, though what he has not read may fill his
 * buffers and nothing else tells it. */
static int wait_for(struct tcp_pairs *p, int64_t until_ns, struct err *err) {
    struct pollfd f[BOOTSTRAP_MEMBERS + 1];
    int64_t until = until_ns < p->call->deadline_ns ? until_ns : p->call->deadline_ns;
    int peer = p->call->peer, world = p->links->world;
    for (int i = 0; i < world; i++)
        f[i] = (struct pollfd){.fd = peer == COLLECTIVE_ANY || peer == i ? p->links->pairs[i] : -1,
                               .events = sending(p) ? POLLOUT | POLLRDHUP : POLLIN};
    f[world] = (struct pollfd){.fd = p->links->wake_fd, .events = POLLIN};
    int n = poll(f, (nfds_t)world + 1, deadline_left_ms(until));
    if (n < 0 && errno != EINTR)
        return err_set(err, -errno, "poll");
    if (n > 0 && f[world].revents)
        return -ECANCELED;
    if (n > 0 && sending(p) && f[peer].revents & POLLRDHUP)
        return tcp_links_lost(p->links, peer, -ECONNRESET, err);
    for (int i = 0; n > 0 && peer == COLLECTIVE_ANY && i < world; i++)
        if (f[i].fd >= 0 && f[i].revents) {
            p->call->peer = i;
            break;
        }
    return n > 0;
}

static int late(const struct tcp_pairs *p, struct err *err) {
    double s = (double)(p->call->deadline_ns - p->started_ns) / 1e9;
    int peer = p->call->peer;
    if (peer == COLLECTIVE_ANY)
        return err_say(err, -ETIMEDOUT, "no rank sent anything within %.3g s", s);
    return err_say(err, -ETIMEDOUT, "rank %d at %s %s nothing more within %.3g s", peer,
                   p->links->names[peer], sending(p) ? "took" : "sent", s);
}

int tcp_pairs_poll(struct tcp_pairs *p, int timeout_ms, struct err *err) {
    int64_t until = timeout_ms < 0 ? INT64_MAX : deadline_in_ns((int64_t)timeout_ms * 1000000);
    for (;;) {
        int r = exchange(p, err);
        if (r == 1)
            r = check(p, err);
        else if (r == 0) {
            int n = wait_for(p, until, err);
            r = n < 0 ? n : 0;
        }
        if (r == 1)
            p->call = NULL;
        if (r != 0)
            return r;
        int64_t now = deadline_now_ns();
        if (now >= p->call->deadline_ns)
            return late(p, err);
        if (now >= until)
            return 0;
    }
}
