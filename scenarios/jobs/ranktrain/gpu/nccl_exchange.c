#include "scenarios/jobs/ranktrain/gpu/nccl_exchange.h"

#include <string.h>

/* Bytes, from and to. */
struct extent {
    size_t from, to;
};

const char *nccl_exchange_name(enum collective_op op) {
    switch (op) {
    case COLLECTIVE_ALL_REDUCE:
        return "all-reduce";
    case COLLECTIVE_REDUCE_SCATTER:
        return "reduce-scatter";
    case COLLECTIVE_ALL_GATHER:
        return "all-gather";
    case COLLECTIVE_BROADCAST:
        return "broadcast";
    case COLLECTIVE_SEND:
        return "send";
    case COLLECTIVE_RECEIVE:
        return "receive";
    }
    return "exchange";
}

static bool has_parts(const struct nccl_exchange *e) {
    return e->call->op == COLLECTIVE_REDUCE_SCATTER || e->call->op == COLLECTIVE_ALL_GATHER;
}

/* A rank's part where the caller has it, and where it lies here. */
static struct extent given(const struct nccl_exchange *e, int rank) {
    return (struct extent){e->call->bounds[rank], e->call->bounds[rank + 1]};
}

static size_t place(const struct nccl_exchange *e, int rank) {
    return e->slots ? e->slot * (size_t)rank : given(e, rank).from;
}

static struct extent placed(const struct nccl_exchange *e, int rank) {
    struct extent g = given(e, rank);
    size_t at = place(e, rank);
    return (struct extent){at, at + (g.to - g.from)};
}

static void lay_out(struct nccl_exchange *e) {
    size_t world = (size_t)e->world;
    e->slots = false;
    e->slot = 0;
    e->bytes = e->call->bytes;
    for (int r = 0; has_parts(e) && r < e->world; r++) {
        struct extent g = given(e, r);
        e->slot = g.to - g.from > e->slot ? g.to - g.from : e->slot;
    }
    e->slots = has_parts(e) && e->slot * world <= e->bytes + e->bytes / 8;
    if (e->slots)
        e->bytes = e->slot * world;
}

/* What of all this rank gives, and what it gets. */
static struct extent outgoing(const struct nccl_exchange *e) {
    const struct collective_call *c = e->call;
    bool none =
        c->op == COLLECTIVE_RECEIVE || (c->op == COLLECTIVE_BROADCAST && c->peer != e->rank);
    if (c->op == COLLECTIVE_ALL_GATHER)
        return placed(e, e->rank);
    return none ? (struct extent){0, 0} : (struct extent){0, e->bytes};
}

static struct extent incoming(const struct nccl_exchange *e) {
    const struct collective_call *c = e->call;
    bool none = c->op == COLLECTIVE_SEND || (c->op == COLLECTIVE_BROADCAST && c->peer == e->rank);
    if (c->op == COLLECTIVE_REDUCE_SCATTER)
        return placed(e, e->rank);
    return none ? (struct extent){0, 0} : (struct extent){0, e->bytes};
}

/* Behind a part that is shorter than its slot are zeros, which are summed, too. */
static void fill(struct nccl_exchange *e) {
    const char *data = e->call->data;
    struct extent out = outgoing(e);
    if (!has_parts(e)) {
        if (out.to)
            memcpy(e->staging, data, out.to);
        return;
    }
    for (int r = 0; r < e->world; r++) {
        struct extent g = given(e, r), p = placed(e, r);
        if (e->call->op == COLLECTIVE_ALL_GATHER && r != e->rank)
            continue;
        memcpy(e->staging + p.from, data + g.from, g.to - g.from);
        if (e->slots)
            memset(e->staging + p.to, 0, e->slot - (p.to - p.from));
    }
}

void nccl_exchange_take(const struct nccl_exchange *e) {
    char *data = e->call->data;
    struct extent in = incoming(e);
    if (!has_parts(e)) {
        if (in.to)
            memcpy(data, e->staging, in.to);
        return;
    }
    for (int r = 0; r < e->world; r++) {
        struct extent g = given(e, r), p = placed(e, r);
        if (e->call->op == COLLECTIVE_ALL_GATHER || r == e->rank)
            memcpy(data + g.from, e->staging + p.from, g.to - g.from);
    }
}

static int reserve(struct nccl_exchange *e, struct err *err) {
    if (e->bytes <= e->room)
        return 0;
    cudaFree(e->buffer);
    cudaFreeHost(e->staging);
    e->buffer = e->staging = NULL;
    e->room = 0;
    cudaError_t r = cudaMalloc((void **)&e->buffer, e->bytes);
    if (r == cudaSuccess) /* a copy to or from other memory would wait for the stream */
        r = cudaMallocHost((void **)&e->staging, e->bytes);
    if (r != cudaSuccess)
        return device_fail(e->device, r, "memory for what is exchanged", err);
    e->room = e->bytes;
    return 0;
}

static cudaError_t copy(struct nccl_exchange *e, struct extent s, enum cudaMemcpyKind kind) {
    char *to = kind == cudaMemcpyHostToDevice ? e->buffer : e->staging;
    const char *from = kind == cudaMemcpyHostToDevice ? e->staging : e->buffer;
    if (s.from == s.to)
        return cudaSuccess;
    return cudaMemcpyAsync(to + s.from, from + s.from, s.to - s.from, kind, e->stream);
}

/* One call for each part that is not empty: the sum of it for its owner, or it from its owner. */
static int call_parts(struct nccl_exchange *e, struct nccl_comm *comm) {
    const struct nccl_api *api = e->api;
    bool sums = e->call->op == COLLECTIVE_REDUCE_SCATTER;
    int r = api->GroupStart();
    for (int i = 0; i < e->world && r == NCCL_SUCCESS; i++) {
        struct extent p = placed(e, i);
        char *at = e->buffer + p.from;
        size_t n = p.to - p.from;
        if (n && sums)
            r = api->Reduce(at, at, n / sizeof(int64_t), NCCL_INT64, NCCL_SUM, i, comm, e->stream);
        else if (n)
            r = api->Broadcast(at, at, n, NCCL_UINT8, i, comm, e->stream);
        r = r == NCCL_IN_PROGRESS ? NCCL_SUCCESS : r;
    }
    int ended = api->GroupEnd();
    return r == NCCL_SUCCESS ? ended : r;
}

static int call_nccl(struct nccl_exchange *e, struct nccl_comm *comm) {
    const struct nccl_api *api = e->api;
    char *all = e->buffer, *own = e->slots ? all + place(e, e->rank) : all;
    int peer = e->call->peer;
    switch (e->call->op) {
    case COLLECTIVE_ALL_REDUCE:
        return api->AllReduce(all, all, e->bytes / sizeof(int64_t), NCCL_INT64, NCCL_SUM, comm,
                              e->stream);
    case COLLECTIVE_REDUCE_SCATTER:
        return e->slots ? api->ReduceScatter(all, own, e->slot / sizeof(int64_t), NCCL_INT64,
                                             NCCL_SUM, comm, e->stream)
                        : call_parts(e, comm);
    case COLLECTIVE_ALL_GATHER:
        return e->slots ? api->AllGather(own, all, e->slot, NCCL_UINT8, comm, e->stream)
                        : call_parts(e, comm);
    case COLLECTIVE_BROADCAST:
        return api->Broadcast(all, all, e->bytes, NCCL_UINT8, peer, comm, e->stream);
    case COLLECTIVE_SEND:
        return api->Send(all, e->bytes, NCCL_UINT8, peer, comm, e->stream);
    case COLLECTIVE_RECEIVE:
        return api->Recv(all, e->bytes, NCCL_UINT8, peer, comm, e->stream);
    }
    return NCCL_INVALID_ARGUMENT;
}

int nccl_exchange_put(struct nccl_exchange *e, const struct collective_call *call,
                      struct nccl_comm *comm, int *ret_result, struct err *err) {
    e->call = call;
    e->queued = false;
    *ret_result = NCCL_SUCCESS;
    lay_out(e);
    int r = reserve(e, err);
    if (r < 0 || e->bytes == 0)
        return r;
    fill(e);
    cudaError_t c = copy(e, outgoing(e), cudaMemcpyHostToDevice);
    if (c != cudaSuccess)
        return device_fail(e->device, c, nccl_exchange_name(call->op), err);
    *ret_result = call_nccl(e, comm);
    return 0;
}

int nccl_exchange_follow(struct nccl_exchange *e, struct err *err) {
    cudaError_t r = copy(e, incoming(e), cudaMemcpyDeviceToHost);
    if (r == cudaSuccess)
        r = cudaEventRecord(e->done, e->stream);
    if (r != cudaSuccess)
        return device_fail(e->device, r, nccl_exchange_name(e->call->op), err);
    e->queued = true;
    return 0;
}

int nccl_exchange_look(struct nccl_exchange *e, struct err *err) {
    cudaError_t r = e->queued ? cudaEventQuery(e->done) : cudaErrorNotReady;
    if (r == cudaSuccess)
        return 1;
    return r == cudaErrorNotReady ? 0
                                  : device_fail(e->device, r, nccl_exchange_name(e->call->op), err);
}

int nccl_exchange_open(struct nccl_exchange *ret, const struct nccl_api *api, struct device *d,
                       int rank, int world, struct err *err) {
    *ret = (struct nccl_exchange){.api = api, .device = d, .rank = rank, .world = world};
    cudaError_t e = cudaStreamCreateWithFlags(&ret->stream, cudaStreamNonBlocking);
    if (e == cudaSuccess)
        e = cudaEventCreateWithFlags(&ret->done, cudaEventDisableTiming);
    return e == cudaSuccess ? 0 : device_fail(d, e, "a stream for what is exchanged", err);
}

int nccl_exchange_close(struct nccl_exchange *e, struct err *err) {
    cudaError_t r = e->stream ? cudaStreamSynchronize(e->stream) : cudaSuccess;
    if (e->done)
        cudaEventDestroy(e->done);
    if (e->stream)
        cudaStreamDestroy(e->stream);
    cudaFree(e->buffer);
    cudaFreeHost(e->staging);
    return r == cudaSuccess ? 0 : device_fail(e->device, r, "leaving the communicator", err);
}
