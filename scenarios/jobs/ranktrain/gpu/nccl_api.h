/* nccl_api: the few functions of NCCL that ranktrain uses, loaded at run time.
 *
 * The prototypes are our own, of the interface that NCCL has documented since 2.14, the first
 * version with communicators that do not block. Whatever newer version is there is asked for that
 * interface: the configuration carries its own size and version, and what it does not name has the
 * defaults of the library. Source: NVIDIA's NCCL user guide, "API"; nccl.h. */
#pragma once

#include "base/err.h"

#include <limits.h>
#include <stddef.h>

struct CUstream_st;
struct nccl_comm; /* opaque; ncclComm points to it */

enum { NCCL_ID = 128, NCCL_OLDEST = 21400 };

/* Passed by value, as NCCL does. */
struct nccl_id {
    char bytes[NCCL_ID];
};

enum nccl_result {
    NCCL_SUCCESS = 0,
    NCCL_CUDA_ERROR = 1,
    NCCL_SYSTEM_ERROR = 2,
    NCCL_INTERNAL_ERROR = 3,
    NCCL_INVALID_ARGUMENT = 4,
    NCCL_INVALID_USAGE = 5,
    NCCL_REMOTE_ERROR = 6,
    NCCL_IN_PROGRESS = 7
};

enum { NCCL_UINT8 = 1, NCCL_INT64 = 4, NCCL_SUM = 0 };

/* As of 2.14. */
struct nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking;
};
#define NCCL_CONFIG_MAGIC 0xcafebeefu

struct nccl_api {
    char path[PATH_MAX]; /* of the library */
    int version;         /* 22809: 2.28.9 */

    int (*GetVersion)(int *ret);
    int (*GetUniqueId)(struct nccl_id *ret);
    int (*CommInitRankConfig)(struct nccl_comm **ret, int world, struct nccl_id id, int rank,
                              struct nccl_config *config);
    int (*CommGetAsyncError)(struct nccl_comm *comm, int *ret);
    int (*AllReduce)(const void *send, void *receive, size_t n, int type, int operation,
                     struct nccl_comm *comm, struct CUstream_st *stream);
    int (*Broadcast)(const void *send, void *receive, size_t n, int type, int root,
                     struct nccl_comm *comm, struct CUstream_st *stream);
    int (*Reduce)(const void *send, void *receive, size_t n, int type, int operation, int root,
                  struct nccl_comm *comm, struct CUstream_st *stream);
    /* n: numbers of one rank's part; as many from each rank, in the order of ranks. */
    int (*ReduceScatter)(const void *send, void *receive, size_t n, int type, int operation,
                         struct nccl_comm *comm, struct CUstream_st *stream);
    int (*AllGather)(const void *send, void *receive, size_t n, int type, struct nccl_comm *comm,
                     struct CUstream_st *stream);
    int (*Send)(const void *send, size_t n, int type, int peer, struct nccl_comm *comm,
                struct CUstream_st *stream);
    int (*Recv)(void *receive, size_t n, int type, int peer, struct nccl_comm *comm,
                struct CUstream_st *stream);
    int (*GroupStart)(void);
    int (*GroupEnd)(void);
    int (*CommFinalize)(struct nccl_comm *comm);
    int (*CommDestroy)(struct nccl_comm *comm);
    int (*CommAbort)(struct nccl_comm *comm);
    const char *(*GetLastError)(struct nccl_comm *comm);
};

/* Loads the library that $NCCL_LIB names, else libnccl.so.2 as the loader finds it, else from the
 * folders in which the CUDA toolkit and Python's packages leave it. It stays loaded. Returns 0;
 * -ENOENT when there is none, -ENOEXEC when it cannot be used: of another major version, older than
 * 2.14, or no NCCL at all. The sentence says what to do. */
int nccl_api_load(struct nccl_api *ret, struct err *err);

/* A configuration for a communicator that never blocks its caller. */
struct nccl_config nccl_config_unblocking(void);

/* "ncclRemoteError"; "an unknown result" for a number that is none. */
const char *nccl_result_name(int result);

/* "2.28.9" */
const char *nccl_version_name(int version, char ret[24]);
