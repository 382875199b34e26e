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

struct call {
    struct ncclComm *comm;
    const int64_t *send;
    int64_t *receive;
    size_t count;
    uint64_t number;
};

struct ncclComm {
    int rank, world, device;
    ncclUniqueId id;
    pthread_t former, mover, launcher;
    bool forming, moving, launching; /* those threads are there to be joined */

    int abort_fd; /* an eventfd */
    int listener, next, prev;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    ncclResult_t state, proxy; /* of the communicator; of the progress thread */
    bool aborted, ending, finalizing;
    struct call *posted; /* by the kernel, for the progress thread */
    uint64_t done;       /* collectives that are through */
    uint64_t started;
    int users; /* the owner, and each call in the stream */
};

/* The thread that forms a communicator; sets state. */
void *comm_form(void *comm);

/* The progress thread. */
void *comm_move(void *comm);

/* An id, and the root behind it. */
ncclResult_t root_start(ncclUniqueId *ret);

void comm_set_state(struct ncclComm *c, ncclResult_t state);
bool comm_aborted(struct ncclComm *c);
