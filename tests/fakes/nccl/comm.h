/* comm: a communicator of the fake, and its threads.
 *
 * The "kernel" of a collective is a function in the stream: it hands the work to the progress
 * thread and stands there until that is through or an abort comes - as NCCL's kernel spins. The
 * progress thread moves the data around the ring; when a peer is gone it keeps ncclRemoteError in
 * `proxy` and does nothing more, and the kernel goes on standing. */
#pragma once

#include "tests/fakes/nccl/nccl.h"
#include "tests/fakes/nccl/sockets.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { RANKS = 64, HOST_KEY = 128, BUS_ID = 24 };

/* What the ranks know of one another. */
struct rank_place {
    int rank;
    struct endpoint root, ring; /* where the root, and the rank before, find it */
    char host[HOST_KEY], bus[BUS_ID];
};

enum call_kind { ALL_REDUCE, BROADCAST, REDUCE, REDUCE_SCATTER, ALL_GATHER, SEND, RECEIVE };

/* One of a group, which begins and ends as one; most groups have one. */
struct call {
    struct call *next;
    enum call_kind kind;
    const void *send;
    void *receive;
    size_t count, size; /* of numbers; of one */
    int peer;           /* or the root */
};

struct work {
    struct ncclComm *comm;
    struct call *first;
    uint64_t number;
};

struct ncclComm {
    int rank, world, device;
    ncclUniqueId id;
    pthread_t former, mover, launcher;
    bool forming, moving, launching; /* those threads are there to be joined */

    int abort_fd; /* an eventfd */
    int listener, next, prev;
    int pairs[RANKS]; /* the connection with each other rank; -1: none */
    uint64_t rounds;  /* collectives that have gone round the ring; the mover's */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    ncclResult_t state, proxy; /* of the communicator; of the progress thread */
    bool aborted, ending, finalizing;
    struct work *posted; /* by the kernel, for the progress thread */
    uint64_t done;       /* groups that are through */
    uint64_t started;
    int users; /* the owner, and each group in the stream */
};

/* The thread that forms a communicator; sets state. */
void *comm_form(void *comm);

/* The progress thread. */
void *comm_move(void *comm);

/* A group, as it is taken in: adds a call to that of this thread, or puts it into the stream alone
 * (group.c). */
ncclResult_t group_add(struct ncclComm *c, const struct call *call, struct CUstream_st *stream);

/* Puts a group into the stream. It becomes the stream's. */
ncclResult_t comm_launch(struct ncclComm *c, struct call *first, struct CUstream_st *stream);

/* An id, and the root behind it. */
ncclResult_t root_start(ncclUniqueId *ret);

void comm_set_state(struct ncclComm *c, ncclResult_t state);
bool comm_aborted(struct ncclComm *c);
