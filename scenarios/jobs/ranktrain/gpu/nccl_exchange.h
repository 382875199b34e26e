/* nccl_exchange: the data of a collective call on their way: through pinned memory of the host and
 * memory of the device into NCCL, and back.
 *
 * Parts of nearly the same size go by ncclReduceScatter and ncclAllGather, which want the same of
 * every rank: each part has a slot as large as the largest. Others, as those of a layer that lies
 * with one rank, go as a group of ncclReduce or ncclBroadcast, one for each part, so that what a rank
 * needs for a layer is that layer. All but nccl_exchange_take is for the device's thread. */
#pragma once

#include "scenarios/jobs/ranktrain/gpu/device.h"
#include "scenarios/jobs/ranktrain/gpu/nccl_api.h"
#include "scenarios/jobs/ranktrain/net/collective.h"

struct nccl_exchange {
    const struct nccl_api *api;
    struct device *device;
    int rank, world;
    cudaStream_t stream; /* not that of the kernels: they go on meanwhile */
    cudaEvent_t done;
    bool queued; /* all that follows NCCL's call is in the stream, too */

    const struct collective_call *call; /* the caller's */
    bool slots;
    size_t slot, bytes;     /* bytes: of all, as they lie here */
    size_t room;            /* of both: */
    char *staging, *buffer; /* in pinned memory of the host and on the device */
};

int nccl_exchange_open(struct nccl_exchange *ret, const struct nccl_api *api, struct device *d,
                       int rank, int world, struct err *err);

/* Puts a call into the stream; *ret_result is what NCCL says. The call stays in use until it is
 * taken. */
int nccl_exchange_put(struct nccl_exchange *e, const struct collective_call *call,
                      struct nccl_comm *comm, int *ret_result, struct err *err);

/* What follows may be put into the stream only when NCCL's call is in it. */
int nccl_exchange_follow(struct nccl_exchange *e, struct err *err);

/* Returns 1 when all has come, 0 when it has not, or an error. */
int nccl_exchange_look(struct nccl_exchange *e, struct err *err);

/* Copies to the caller's data what has come. */
void nccl_exchange_take(const struct nccl_exchange *e);

/* Waits for the stream and gives everything back. */
int nccl_exchange_close(struct nccl_exchange *e, struct err *err);

/* "all-gather" */
const char *nccl_exchange_name(enum collective_op op);
