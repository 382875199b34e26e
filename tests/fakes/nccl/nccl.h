/* nccl: the part of NCCL's interface that the fake library has, in our own words. A unit test that
 * speaks to the fake, and the fake itself, include this; the job has prototypes of its own
 * (gpu/nccl_api.h), so that a mistake in those shows. Source: NVIDIA's NCCL user guide. */
#pragma once

#include <stddef.h>

#define NCCL_PUBLIC __attribute__((visibility("default")))

typedef struct ncclComm *ncclComm_t;
struct CUstream_st;

typedef struct {
    char internal[128];
} ncclUniqueId;

typedef enum {
    ncclSuccess,
    ncclUnhandledCudaError,
    ncclSystemError,
    ncclInternalError,
    ncclInvalidArgument,
    ncclInvalidUsage,
    ncclRemoteError,
    ncclInProgress
} ncclResult_t;

typedef enum { ncclUint8 = 1, ncclInt64 = 4 } ncclDataType_t;
typedef enum { ncclSum = 0 } ncclRedOp_t;

typedef struct {
    size_t size;
    unsigned int magic, version;
    int blocking;
} ncclConfig_t;

NCCL_PUBLIC ncclResult_t ncclGetVersion(int *version);
NCCL_PUBLIC ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
NCCL_PUBLIC ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int world, ncclUniqueId id,
                                                int rank, ncclConfig_t *config);
NCCL_PUBLIC ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state);
NCCL_PUBLIC ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count,
                                       ncclDataType_t type, ncclRedOp_t operation, ncclComm_t comm,
                                       struct CUstream_st *stream);
NCCL_PUBLIC ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count,
                                       ncclDataType_t type, int root, ncclComm_t comm,
                                       struct CUstream_st *stream);
NCCL_PUBLIC ncclResult_t ncclReduce(const void *send, void *receive, size_t count,
                                    ncclDataType_t type, ncclRedOp_t operation, int root,
                                    ncclComm_t comm, struct CUstream_st *stream);
NCCL_PUBLIC ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t receive_count,
                                           ncclDataType_t type, ncclRedOp_t operation,
                                           ncclComm_t comm, struct CUstream_st *stream);
NCCL_PUBLIC ncclResult_t ncclAllGather(const void *send, void *receive, size_t send_count,
                                       ncclDataType_t type, ncclComm_t comm,
                                       struct CUstream_st *stream);
NCCL_PUBLIC ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
                                  ncclComm_t comm, struct CUstream_st *stream);
NCCL_PUBLIC ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type, int peer,
                                  ncclComm_t comm, struct CUstream_st *stream);
NCCL_PUBLIC ncclResult_t ncclGroupStart(void);
NCCL_PUBLIC ncclResult_t ncclGroupEnd(void);
NCCL_PUBLIC ncclResult_t ncclCommFinalize(ncclComm_t comm);
NCCL_PUBLIC ncclResult_t ncclCommDestroy(ncclComm_t comm);
NCCL_PUBLIC ncclResult_t ncclCommAbort(ncclComm_t comm);
NCCL_PUBLIC const char *ncclGetLastError(ncclComm_t comm);
