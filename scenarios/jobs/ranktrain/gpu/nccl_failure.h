/* nccl_failure: what is said when NCCL fails. NCCL seldom names a rank; what it lets out is matched
 * with the addresses that the ranks have, and where that leads to nobody the neighbours in the ring
 * are named: one of them, or somebody behind them, it must be. */
#pragma once

#include "scenarios/jobs/ranktrain/gpu/nccl_api.h"
#include "scenarios/jobs/ranktrain/net/bootstrap.h"

#include "base/err.h"

struct nccl_peers {
    int rank, world;
    struct link_address at[BOOTSTRAP_MEMBERS]; /* not one's own */
};

struct nccl_peers nccl_peers_of(const struct peer_group *g);

/* "rank 2 at 10.0.0.3" */
const char *nccl_peer_name(const struct nccl_peers *p, int rank, char ret[LINK_NAME + 16]);

/* The sentence of a result other than success; words is what ncclGetLastError says, "" or NULL:
 * nothing. Returns -ECONNRESET for a peer that is gone, -EINVAL for wrong usage, else -EIO. */
int nccl_fail(const struct nccl_peers *p, int result, const char *words, const char *doing,
              struct err *err);

/* The sentence for something that has not ended in time. Returns -ETIMEDOUT. */
int nccl_late(const struct nccl_peers *p, double within_s, const char *doing, struct err *err);
