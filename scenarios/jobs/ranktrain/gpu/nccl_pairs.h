/* nccl_pairs: who has something for whom, told over the connection of the two.
 *
 * NCCL can be asked for what one certain rank sends, and not for whatever comes first; and who asks
 * too early has a kernel that spins until the peer is there. So a sender says one byte over TCP
 * before it hands its data to NCCL, and a receiver hands its own call to NCCL when it has heard
 * that. Who has gone is noticed there, too. */
#pragma once

#include "scenarios/jobs/ranktrain/net/tcp_links.h"

struct nccl_pairs {
    struct tcp_links links;
    bool open;
};

/* In groups with pairs. nccl_pairs_close in either case. */
int nccl_pairs_open(struct nccl_pairs *ret, struct peer_group *g, const struct link_wait *w,
                    struct err *err);
void nccl_pairs_close(struct nccl_pairs *p);

/* Returns 0, or -EINVAL or -ENOTSUP and a sentence where there is no such connection; any: peer may be
 * COLLECTIVE_ANY. */
int nccl_pairs_check(const struct nccl_pairs *p, int peer, bool any, struct err *err);

/* To peer, that something follows. */
int nccl_pairs_tell(struct nccl_pairs *p, int peer, const struct link_wait *w, struct err *err);

/* Until somebody, or *peer, has told so. Returns 1 and who it was, 0: not until until_ns, -ECANCELED,
 * or an error whose sentence names the peer. */
int nccl_pairs_hear(struct nccl_pairs *p, int *peer, int64_t until_ns, struct err *err);
