/* Groups: what is called between ncclGroupStart and ncclGroupEnd begins and ends as one. The calls
 * themselves are here, too: they differ in what they note down. */
#include "tests/fakes/nccl/comm.h"

#include <stdlib.h>

/* Of this thread: as in NCCL, a group belongs to who began it. */
static __thread struct {
    int depth;
    struct ncclComm *comm;
    struct CUstream_st *stream;
    struct call *first, **last;
} group;

ncclResult_t ncclGroupStart(void) {
    if (group.depth++ == 0) {
        group.comm = NULL;
        group.first = NULL;
        group.last = &group.first;
    }
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    if (group.depth == 0)
        return complain(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
    if (--group.depth > 0 || !group.first)
        return ncclSuccess;
    return comm_launch(group.comm, group.first, group.stream);
}

ncclResult_t group_add(struct ncclComm *c, const struct call *call, struct CUstream_st *stream) {
    struct call *own = malloc(sizeof(*own));
    *own = *call;
    if (group.depth == 0)
        return comm_launch(c, own, stream);
    group.comm = c;
    group.stream = stream;
    *group.last = own;
    group.last = &own->next;
    return ncclSuccess;
}

static size_t size_of(ncclDataType_t type) {
    return type == ncclUint8 ? 1 : 8;
}

static ncclResult_t add_sum(const struct call *call, ncclDataType_t type, ncclRedOp_t operation,
                            ncclComm_t c, struct CUstream_st *stream) {
    if (type != ncclInt64 || operation != ncclSum)
        return complain(ncclInvalidArgument, "the fake sums int64 only");
    return group_add(c, call, stream);
}

static ncclResult_t add_pair(const struct call *call, ncclComm_t c, struct CUstream_st *stream) {
    if (call->peer < 0 || call->peer >= c->world || call->peer == c->rank)
        return complain(ncclInvalidArgument, "Invalid peer %d", call->peer);
    return group_add(c, call, stream);
}

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t c, struct CUstream_st *stream) {
    struct call call = {.kind = ALL_REDUCE,
                        .send = send,
                        .receive = receive,
                        .count = count,
                        .size = size_of(type)};
    return add_sum(&call, type, operation, c, stream);
}

ncclResult_t ncclReduce(const void *send, void *receive, size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, int root, ncclComm_t c, struct CUstream_st *stream) {
    struct call call = {.kind = REDUCE,
                        .send = send,
                        .receive = receive,
                        .count = count,
                        .size = size_of(type),
                        .peer = root};
    return add_sum(&call, type, operation, c, stream);
}

ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t receive_count,
                               ncclDataType_t type, ncclRedOp_t operation, ncclComm_t c,
                               struct CUstream_st *stream) {
    struct call call = {.kind = REDUCE_SCATTER,
                        .send = send,
                        .receive = receive,
                        .count = receive_count,
                        .size = size_of(type)};
    return add_sum(&call, type, operation, c, stream);
}

ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type,
                           int root, ncclComm_t c, struct CUstream_st *stream) {
    struct call call = {.kind = BROADCAST,
                        .send = send,
                        .receive = receive,
                        .count = count,
                        .size = size_of(type),
                        .peer = root};
    return group_add(c, &call, stream);
}

ncclResult_t ncclAllGather(const void *send, void *receive, size_t send_count, ncclDataType_t type,
                           ncclComm_t c, struct CUstream_st *stream) {
    struct call call = {.kind = ALL_GATHER,
                        .send = send,
                        .receive = receive,
                        .count = send_count,
                        .size = size_of(type)};
    return group_add(c, &call, stream);
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t c,
                      struct CUstream_st *stream) {
    struct call call = {
        .kind = SEND, .send = send, .count = count, .size = size_of(type), .peer = peer};
    return add_pair(&call, c, stream);
}

ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type, int peer, ncclComm_t c,
                      struct CUstream_st *stream) {
    struct call call = {
        .kind = RECEIVE, .receive = receive, .count = count, .size = size_of(type), .peer = peer};
    return add_pair(&call, c, stream);
}
