#include "scenarios/jobs/ranktrain/gpu/nccl_pairs.h"
#include "scenarios/jobs/ranktrain/net/collective.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include <errno.h>
#include <poll.h>

int nccl_pairs_open(struct nccl_pairs *ret, struct peer_group *g, const struct link_wait *w,
                    struct err *err) {
    *ret = (struct nccl_pairs){.open = g->pairs};
    return g->pairs ? tcp_links_open(&ret->links, g, w, err) : 0;
}

void nccl_pairs_close(struct nccl_pairs *p) {
    if (p->open)
        tcp_links_close(&p->links);
    p->open = false;
}

int nccl_pairs_check(const struct nccl_pairs *p, int peer, bool any, struct err *err) {
    const struct tcp_links *l = &p->links;
    if (!p->open)
        return err_say(err, -ENOTSUP, "this group has no connections of pairs");
    if (any && peer == COLLECTIVE_ANY)
        return 0;
    if (peer < 0 || peer >= l->world || peer == l->rank)
        return err_say(err, -EINVAL, "rank %d has no connection with rank %d", l->rank, peer);
    return 0;
}

int nccl_pairs_tell(struct nccl_pairs *p, int peer, const struct link_wait *w, struct err *err) {
    const char word = 1;
    int r = link_send(p->links.pairs[peer], &word, sizeof(word), w);
    return r < 0 && r != -ECANCELED ? tcp_links_lost(&p->links, peer, r, err) : r;
}

/* Returns 1: it has told so, 0: it has not, or an error. */
static int take_word(struct nccl_pairs *p, int peer, struct err *err) {
    char word;
    ssize_t n = recv(p->links.pairs[peer], &word, sizeof(word), MSG_DONTWAIT);
    if (n == 1)
        return 1;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return tcp_links_lost(&p->links, peer, n == 0 ? -ECONNRESET : -errno, err);
}

int nccl_pairs_hear(struct nccl_pairs *p, int *peer, int64_t until_ns, struct err *err) {
    struct pollfd f[BOOTSTRAP_MEMBERS + 1];
    int world = p->links.world;
    for (int i = 0; i < world; i++)
        f[i] = (struct pollfd){.fd = *peer == COLLECTIVE_ANY || *peer == i ? p->links.pairs[i] : -1,
                               .events = POLLIN};
    f[world] = (struct pollfd){.fd = p->links.wake_fd, .events = POLLIN};
    int n = poll(f, (nfds_t)world + 1, deadline_left_ms(until_ns));
    if (n < 0 && errno != EINTR)
        return err_set(err, -errno, "poll");
    if (n > 0 && f[world].revents)
        return -ECANCELED;
    for (int i = 0; n > 0 && i < world; i++) {
        int r = f[i].fd >= 0 && f[i].revents ? take_word(p, i, err) : 0;
        if (r > 0 || (r < 0 && *peer == COLLECTIVE_ANY))
            *peer = i;
        if (r != 0)
            return r;
    }
    return 0;
}
